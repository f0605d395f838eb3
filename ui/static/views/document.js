import { html, useEffect, useState } from "../lib/preact.js";
import { path, post, text } from "../lib/api.js";
import { member, prettyText } from "../lib/json.js";
import { useCommand, useQuery } from "../lib/query.js";
import { every } from "../lib/pace.js";
import { mayOperate } from "../lib/session.js";
import { rememberCollection } from "../lib/recent.js";
import * as shapes from "../lib/shapes.js";
import { Json } from "../components/code.js";
import { Copy } from "../components/copy.js";
import { Dialog, Field } from "../components/dialog.js";
import { Freshness, Loading, Notice, ProblemBox, announce } from "../components/notice.js";
import { Time } from "../components/time.js";

// readDocument keeps the body as the text that came; a document that is not there is version 0.
const readDocument = (collection, id) => async (signal) => {
  try {
    const answer = await text(`/v1${path("documents", collection, id)}`, { signal });
    return { ...shapes.document(JSON.parse(answer)), body: member(answer, "body") ?? "null" };
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    return { collection, id, version: 0, body: "" };
  }
};

// The body goes out as the text that was written, since a number may have more digits than JavaScript keeps.
const change = (op, { collection, id }, version, body) =>
  `{"changes":[{"op":"${op}","collection":${JSON.stringify(collection)},"id":${JSON.stringify(id)}${body === undefined ? "" : `,"body":${body}`},"if_version":${version}}]}`;

export function Document({ collection, id }) {
  const { data, problem, refresh } = useQuery(`document ${collection}/${id}`, readDocument(collection, id), { every: every.document });
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  useEffect(() => rememberCollection(collection), [collection]);
  const done = (changed) => {
    setEditing(false);
    setDeleting(false);
    if (changed) refresh();
  };
  const there = data?.version > 0;
  return html`
    <header class="head">
      <h1 tabindex="-1"><a class="main-link mono" href=${path("documents", collection)}>${collection}</a><span class="faint"> / </span><span class="mono">${id}</span></h1>
      ${data && !editing && mayOperate() && html`<div class="actions">
        <button type="button" class=${there ? "" : "primary"} onClick=${() => setEditing(true)}>${there ? "Edit" : "Write it"}</button>
        ${there && html`<button type="button" class="danger" onClick=${() => setDeleting(true)}>Delete …</button>`}</div>`}
    </header>
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    <${Freshness} value=${data?.freshness} />
    ${!data && !problem && html`<${Loading} what="the document" />`}
    ${data && editing && html`<${Editor} current=${data} onDone=${done} />`}
    ${data && !editing && html`
      <section class="card" aria-label="Document">
        ${there ? html`
          <header><h2>Version ${data.version}</h2>${data.changed && html`<p class="small faint">changed <${Time} at=${data.changed} /></p>`}
            <div class="aside tools"><${Copy} text=${() => prettyText(data.body)} what="the document" label="Copy" /></div></header>
          <${Json} text=${data.body} label="Body" />` : html`
          <div class="empty"><h2>There is no such document</h2><p>It was never written, or it is deleted. ${mayOperate() ? "Write it to make it." : ""}</p></div>`}
      </section>`}
    ${deleting && html`<${Delete} current=${data} onDone=${done} />`}`;
}

// Editor writes against the version it began with: what somebody else has changed meanwhile is refused, never overwritten unseen.
function Editor({ current, onDone }) {
  const [base, setBase] = useState(current);
  const [body, setBody] = useState(current.body ? prettyText(current.body) : "{\n  \n}");
  const [wrong, setWrong] = useState("");
  const put = useCommand(async () => {
    await post("/v1/transactions", change("put", base, base.version, body.trim()));
    announce("The document is written");
    onDone(true);
  });
  const submit = (event) => {
    event.preventDefault();
    try {
      JSON.parse(body);
      setWrong("");
      put.run();
    } catch (error) {
      setWrong(`This is not JSON: ${error.message}`);
    }
  };
  const keys = (event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && submit(event);
  const moved = current.version !== base.version;
  return html`
    <form class="card editor" onSubmit=${submit} onKeyDown=${keys} aria-label="Edit the document">
      ${moved && html`<${Notice}>Somebody wrote version ${current.version} while you were editing version ${base.version}.
        <button type="button" class="inline" onClick=${() => { setBase(current); setBody(prettyText(current.body)); }}>Take theirs and lose mine</button>
        <button type="button" class="inline" onClick=${() => setBase(current)}>Keep mine, to replace theirs</button><//>`}
      <${Field} label=${base.version > 0 ? `Body, replacing version ${base.version}` : "Body of the new document"} wrong=${wrong || put.problem?.at?.("body")}
        hint="JSON, stored as you write it. Ctrl+Enter writes it." render=${(props) => html`
          <textarea ...${props} rows="18" spellcheck=${false} value=${body} onInput=${(event) => setBody(event.target.value)}></textarea>`} />
      <${ProblemBox} problem=${put.problem} />
      <div class="buttons">
        <button type="button" onClick=${() => onDone(false)} disabled=${put.busy}>Cancel</button>
        <button class="primary" disabled=${put.busy}>${put.busy ? "Writing …" : "Write"}</button>
      </div>
    </form>`;
}

function Delete({ current, onDone }) {
  const drop = useCommand(async () => {
    await post("/v1/transactions", change("delete", current, current.version));
    announce("The document is deleted");
    onDone(true);
  });
  return html`
    <${Dialog} title="Delete this document?" onClose=${() => onDone(false)} onSubmit=${drop.run} lock=${drop.busy}>
      <p>Version ${current.version} of <code>${current.collection}/${current.id}</code> is deleted, unless somebody changes it first. No message is staged for it.</p>
      <${ProblemBox} problem=${drop.problem} />
      <div class="buttons">
        <button type="button" onClick=${() => onDone(false)} disabled=${drop.busy}>Keep it</button>
        <button class="danger" disabled=${drop.busy}>Delete the document</button>
      </div>
    <//>`;
}
