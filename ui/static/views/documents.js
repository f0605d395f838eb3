import { html, useState } from "../lib/preact.js";
import { get, path } from "../lib/api.js";
import { useQuery } from "../lib/query.js";
import * as shapes from "../lib/shapes.js";
import { Empty } from "../components/copy.js";
import { FIRST_DOCUMENT } from "../components/examples.js";
import { Loading, ProblemBox } from "../components/notice.js";
import { Time } from "../components/time.js";
import { go, withQuery } from "../router.js";
import { recentCollections } from "../lib/recent.js";

export function Documents({ collection = "", query }) {
  return html`
    <header class="head">
      <h1 tabindex="-1">${collection ? html`Documents in <span class="mono">${collection}</span>` : "Documents"}</h1>
      <p>JSON that is kept in Posthorn itself. One transaction changes documents and stages the messages that tell of it.</p>
    </header>
    <${Open} collection=${collection} />
    ${collection ? html`<${List} collection=${collection} after=${query.get("after") ?? ""} />` : html`<${Known} />`}`;
}

// Open leads to a document or a collection; a document that does not exist yet can be written there.
function Open({ collection }) {
  const [name, setName] = useState(collection);
  const [id, setId] = useState("");
  const open = (event) => {
    event.preventDefault();
    if (name.trim()) go(path("documents", name.trim(), ...(id.trim() ? [id.trim()] : [])));
  };
  return html`
    <form class="filters" onSubmit=${open} aria-label="Open a document">
      <div class="first">
        <div class="field"><label for="search">Collection <kbd aria-hidden="true">/</kbd></label>
          <input id="search" value=${name} onInput=${(event) => setName(event.target.value)} placeholder="orders" autocomplete="off" spellcheck=${false} aria-keyshortcuts="/" /></div>
        <div class="field"><label for="document-id">Document id</label>
          <input id="document-id" value=${id} onInput=${(event) => setId(event.target.value)} placeholder="empty: list the collection" autocomplete="off" spellcheck=${false} /></div>
        <button class="primary" disabled=${!name.trim()}>Open</button>
      </div>
    </form>`;
}

function Known() {
  const known = recentCollections();
  return html`
    <section class="card" aria-label="Collections">
      ${known.length === 0
        ? html`<${Empty} title="Open a collection" command=${FIRST_DOCUMENT("orders")}>
            A collection is there as soon as a document is put into it. Put one from a terminal, or open a new id above and write it here:<//>`
        : html`<header><h2>Opened in this browser</h2></header>
            <ul class="plainlist body">${known.map((name) => html`<li key=${name}><a class="mono" href=${path("documents", name)}>${name}</a></li>`)}</ul>`}
    </section>`;
}

function List({ collection, after }) {
  const read = async (signal) => shapes.documents(await get(`/v1${path("documents", collection)}`, { query: { limit: 100, cursor: after }, signal }));
  // No notification tells of a whole collection, so it is read again from time to time.
  const { data, problem, refresh } = useQuery(`documents ${collection} ${after}`, read, { every: 5000 });
  return html`
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    ${!data && !problem && html`<${Loading} what="the collection" />`}
    ${data && html`
      <section class="card" aria-label="Documents">
        ${data.documents.length === 0
          ? html`<${Empty} title="No document here" command=${FIRST_DOCUMENT(collection)}>The collection <code>${collection}</code> is empty. Put a document into it:<//>`
          : html`<table class="table">
              <thead><tr><th scope="col">Document</th><th scope="col" class="number">Version</th><th scope="col" class="number">Changed</th></tr></thead>
              <tbody>${data.documents.map((d) => html`<tr key=${d.id}>
                <td><a class="main-link mono" href=${path("documents", collection, d.id)}>${d.id}</a></td>
                <td class="number">${d.version}</td><td class="number muted"><${Time} at=${d.changed} /></td></tr>`)}</tbody>
            </table>`}
      </section>
      ${(after || data.next) && html`<nav class="pager" aria-label="Pages">
        ${after && html`<a class="button plain" href=${withQuery({ after: "" })}>First</a>`}
        ${data.next && html`<a class="button" href=${withQuery({ after: data.next })}>More</a>`}</nav>`}`}`;
}
