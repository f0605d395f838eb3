import { html } from "../lib/preact.js";
import { get, path } from "../lib/api.js";
import { useQuery } from "../lib/query.js";
import { Json } from "../components/code.js";
import { Prose } from "../components/prose.js";
import { Loading, ProblemBox } from "../components/notice.js";
import { recordPath } from "../components/record-link.js";

// Record shows one record: what people read, what the product reads, and the records around it.
export function Record({ kind, id }) {
  const { data, problem, refresh } = useQuery(`record ${kind}/${id}`, (signal) => get(`/v1${path("records", kind, id)}`, { signal }));
  return html`
    <header class="head"><h1 tabindex="-1">${data?.title ?? id}</h1>
      <p><a href="/records">Records</a> <span class="faint">/</span> <span class="mono">${kind}/${id}</span>${data?.origin === "overlay" && html` <span class="faint">of the data folder</span>`}</p></header>
    <${ProblemBox} problem=${problem} retry=${problem?.status === 404 ? undefined : refresh} kept=${Boolean(data)} />
    ${!data && !problem && html`<${Loading} what="the record" />`}
    ${data?.setting && html`<${Setting} setting=${data.setting} />`}
    ${data?.body && html`<article class="card prose" aria-label="Text"><${Prose} page=${data.html} /></article>`}
    ${data && html`
      <div class="halves">
        <${Mentions} title="Names" list=${data.references} none="It names no other record." />
        <${Mentions} title="Named by" list=${data.referenced_by} none="No other record names it." />
      </div>
      <section class="card" aria-labelledby="front"><header><h2 id="front">Front matter</h2><p class="aside">what the product reads, from ${data.file}</p></header>
        <${Json} text=${JSON.stringify(data.front_matter)} label="Front matter" /></section>`}`;
}

const Setting = ({ setting: s }) => html`
  <section class="card facts-card" aria-label="In effect"><dl class="facts">
    <div><dt>Value</dt><dd>${s.value}</dd></div><div><dt>Unit</dt><dd>${s.unit}</dd></div>
    <div><dt>Bounds</dt><dd>${s.least} to ${s.most}</dd></div>
    <div><dt>Source</dt><dd>${s.source === "override" ? `posthorn.yaml, in place of ${s.default}` : s.source === "file" ? "data folder" : "built-in"}</dd></div>
    <div class="wide"><dt>Observation</dt><dd>${s.observation}</dd></div></dl></section>`;

const Mentions = ({ title, list, none }) => html`
  <section class="card" aria-label=${title}><header><h2>${title}</h2></header>
    ${list.length === 0 ? html`<p class="loading">${none}</p>` : html`<ul class="record-list body">${list.map((m) => html`
      <li key=${m.field + m.kind + m.id}><a class="main-link mono" href=${recordPath(m.kind, m.id)}>${m.kind}/${m.id}</a><span>${m.title}</span><span class="faint">${m.field}</span></li>`)}</ul>`}
  </section>`;
