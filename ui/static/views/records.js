import { html, useState } from "../lib/preact.js";
import { get } from "../lib/api.js";
import { useQuery } from "../lib/query.js";
import { Loading, ProblemBox } from "../components/notice.js";
import { go, withQuery } from "../router.js";
import { KINDS, recordPath } from "../components/record-link.js";

const SHOWN = [["", "Records"], ["settings", "Settings"], ["conformance", "Conformance"]];

// Records is the written declarations that the product lives by: all of them, the settings in effect, and how each provision is met.
export function Records({ query }) {
  const shown = query.get("show") ?? "";
  return html`
    <header class="head"><h1 tabindex="-1">Records</h1>
      <p>What this Posthorn declares and lives by: its events, bounds, runbooks and decisions. Those of the data folder go before those of the program.</p></header>
    <div class="tabs" role="group" aria-label="What is shown">
      ${SHOWN.map(([name, title]) => html`<button key=${name} type="button" aria-pressed=${shown === name} onClick=${() => go(withQuery({ show: name, q: "" }), { keep: true })}>${title}</button>`)}
    </div>
    ${shown === "settings" ? html`<${Settings} />` : shown === "conformance" ? html`<${Conformance} />` : html`<${List} />`}`;
}

const has = (text, ...values) => !text || values.some((value) => String(value).toLowerCase().includes(text.toLowerCase()));

const Search = ({ text, onText, what }) => html`
  <form class="filters" onSubmit=${(event) => event.preventDefault()} aria-label=${`Search ${what}`}>
    <div class="first"><div class="field search"><label for="search">Search <kbd aria-hidden="true">/</kbd></label>
      <input id="search" type="search" value=${text} onInput=${(event) => onText(event.target.value)} autocomplete="off" spellcheck=${false} aria-keyshortcuts="/" /></div></div>
  </form>`;

function List() {
  const { data, problem, refresh } = useQuery("records", async (signal) => (await get("/v1/records", { signal })).records);
  const [text, setText] = useState("");
  const found = (data ?? []).filter((r) => has(text, r.id, r.title, r.kind));
  return html`
    <${Search} text=${text} onText=${setText} what="records" />
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    ${!data && !problem && html`<${Loading} what="the records" />`}
    ${data && found.length === 0 && html`<p class="loading">No record has this in its name.</p>`}
    ${KINDS.filter(([kind]) => found.some((r) => r.kind === kind)).map(([kind, title]) => html`
      <section class="card" key=${kind} aria-labelledby=${`kind-${kind}`}>
        <header><h2 id=${`kind-${kind}`}>${title}</h2></header>
        <ul class="record-list body">${found.filter((r) => r.kind === kind).map((r) => html`
          <li key=${r.id}><a class="main-link mono" href=${recordPath(r.kind, r.id)}>${r.id}</a><span>${r.title}</span>
            ${r.origin === "overlay" && html`<span class="faint">data folder</span>`}</li>`)}</ul>
      </section>`)}`;
}

const SOURCES = { "built-in": "built-in", file: "data folder", override: "posthorn.yaml" };

function Settings() {
  const { data, problem, refresh } = useQuery("settings", async (signal) => (await get("/v1/settings", { signal })).settings);
  const [text, setText] = useState("");
  const found = (data ?? []).filter((s) => has(text, s.id, s.title, s.observation, SOURCES[s.source]));
  return html`
    <${Search} text=${text} onText=${setText} what="settings" />
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    ${!data && !problem && html`<${Loading} what="the settings" />`}
    ${data && html`
      <section class="card" aria-label="Settings"><div class="scroll" tabindex="0" role="region" aria-label="Settings, value and source">
        <table class="table settings">
          <thead><tr><th scope="col">Setting</th><th scope="col" class="number">Value</th><th scope="col" class="number">Least</th><th scope="col" class="number">Most</th>
            <th scope="col">Source</th><th scope="col">Observation</th></tr></thead>
          <tbody>${found.map((s) => html`<tr key=${s.id}>
            <th scope="row"><a class="main-link mono" href=${recordPath("settings", s.id)}>${s.id}</a><div class="small muted">${s.title}</div></th>
            <td class="number">${s.value}</td><td class="number muted">${s.least}</td><td class="number muted">${s.most}</td>
            <td>${s.source === "built-in" ? SOURCES[s.source] : html`<strong>${SOURCES[s.source]}</strong>`}</td><td class="small">${s.observation}</td></tr>`)}</tbody>
        </table></div>
      </section>`}`;
}

function Conformance() {
  const { data, problem, refresh } = useQuery("conformance", async (signal) => (await get("/v1/conformance", { signal })).provisions);
  return html`
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    ${!data && !problem && html`<${Loading} what="the table" />`}
    ${data && html`
      <section class="card" aria-labelledby="conformance"><header><h2 id="conformance">How each provision is met</h2>
        <p class="aside">${data.filter((p) => p.state === "met").length} of ${data.length} met</p></header>
        <div class="scroll" tabindex="0" role="region" aria-label="Provisions">
        <table class="table settings">
          <thead><tr><th scope="col">Provision</th><th scope="col">State</th><th scope="col">How</th><th scope="col">Shown by</th></tr></thead>
          <tbody>${data.map((p) => html`<tr key=${p.provision}><th scope="row">${p.provision}</th><td>${p.state === "met" ? "met" : html`<strong>${p.state}</strong>`}</td>
            <td class="prose">${p.how}</td><td class="small">${p.tests.map((test) => html`<code class="wrap" key=${test}>${test}</code> `)}
              ${p.mutations?.length > 0 && html`<br />known to catch: ${p.mutations.join(", ")}`}</td></tr>`)}</tbody>
        </table></div>
      </section>`}`;
}
