import { html, useRef, useState } from "../lib/preact.js";
import { get, path } from "../lib/api.js";
import { FILTERS, countLetters, groupLetters, textOf } from "../lib/dead-letters.js";
import { count, plural } from "../lib/format.js";
import { useQuery } from "../lib/query.js";
import { every } from "../lib/pace.js";
import { watchBacklog } from "../lib/realtime/index.js";
import { mayOperate } from "../lib/session.js";
import * as shapes from "../lib/shapes.js";
import { BulkReplay } from "../components/bulk-replay.js";
import { Empty } from "../components/copy.js";
import { Choice, SearchFilter, TextField, TimeField, moment } from "../components/filters.js";
import { icons } from "../components/icons.js";
import { Loading, Notice, ProblemBox } from "../components/notice.js";
import { Runbook } from "../components/record-link.js";
import { FAILURES, State, classMeaning } from "../components/state.js";
import { Time } from "../components/time.js";
import { go, withQuery } from "../router.js";

const PAGE = 100;
const MOST_PAGES = 10;

// readLetters reads so many pages of messages that have a dead letter. The list knows nothing of classes; they are told apart here.
async function readLetters({ handler, type, q, from, to }, pages, signal) {
  const found = [];
  let cursor = "";
  for (let page = 0; page < pages; page++) {
    const answer = shapes.messages(await get("/v1/messages", { signal, query: { state: "dead-letter", limit: PAGE, handler, type, q, from, to, cursor } }));
    found.push(...answer.messages);
    cursor = answer.next;
    if (!cursor) break;
  }
  return { messages: found, more: Boolean(cursor) };
}

// DeadLetters is what was given up, by handler, class and error. Its filter is exactly what the bulk replay sends.
export function DeadLetters({ query, backlog }) {
  const shown = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
  const filter = { ...shown, from: moment(shown.from), to: moment(shown.to) };
  const key = JSON.stringify(filter);
  const dead = backlog.data?.total.deadLetters;
  const latest = useRef();
  latest.current = dead;
  const pages = useRef({ key, n: 1 });
  if (pages.current.key !== key) pages.current = { key, n: 1 };
  const [replaying, setReplaying] = useState(false);

  const counted = useQuery(`counted ${key}`, async (signal) => (mayOperate() ? { ...(await countLetters(filter, signal)), dead: latest.current } : null));
  const list = useQuery(`letters ${key}`, (signal) => readLetters(filter, pages.current.n, signal), { every: every.messages, told: watchBacklog });
  const more = () => {
    pages.current.n++;
    list.refresh();
  };
  const narrow = (changes, replay = false) => {
    go(withQuery(changes), { keep: true });
    if (replay) setReplaying(true);
  };
  const ended = (changed) => {
    setReplaying(false);
    if (!changed) return;
    counted.refresh();
    list.refresh();
  };
  const groups = list.data ? groupLetters(list.data.messages, filter, counted.data?.groups) : [];
  const problem = list.problem ?? counted.problem;
  return html`
    <header class="head">
      <h1 tabindex="-1">Dead letters</h1>
      ${mayOperate() && html`<div class="actions">
        <button type="button" class="primary" disabled=${!counted.data?.matched} onClick=${() => setReplaying(true)}>${icons.replay()}Replay what is shown …</button></div>`}
      <p>Deliveries that were given up. Nothing of them is lost: each keeps its message and its evidence until somebody replays it. <${Runbook} id="recover-dead-letters" /></p>
    </header>
    <${Filters} filters=${shown} problem=${problem} />
    <${ProblemBox} problem=${problem} retry=${list.problem ? list.refresh : counted.refresh} kept=${Boolean(list.data)} />
    ${!list.data && !problem && html`<${Loading} what="dead letters" />`}
    ${list.data && html`
      <${Count} counted=${counted} read=${list.data} dead=${dead} />
      ${groups.length === 0 && html`<section class="card" aria-label="Dead letters">${FILTERS.some((name) => shown[name])
        ? html`<${Empty} title="No dead letter fits">None has all that the filters ask for. <a href="/dead-letters">Clear the filters</a><//>`
        : html`<${Empty} title="No dead letter">Every delivery is under way, waits, or was accepted.<//>`}</section>`}
      ${groups.map((g) => html`<${Group} key=${`${g.handler} ${g.class}`} group=${g} narrow=${narrow} exactly=${Boolean(counted.data)} />`)}
      ${list.data.more && pages.current.n < MOST_PAGES && groups.length > 0 && html`
        <nav class="pager" aria-label="More errors"><button type="button" disabled=${list.loading} onClick=${more}>Look at older ones for errors</button></nav>`}`}
    ${replaying && html`<${BulkReplay} filter=${filter} onClose=${ended} />`}`;
}

function Filters({ filters, problem }) {
  const [more, setMore] = useState(Boolean(filters.type || filters.from || filters.to));
  return html`
    <form class="filters" role="search" aria-label="Dead letters" onSubmit=${(event) => event.preventDefault()}>
      <div class="first">
        <${SearchFilter} value=${filters.q} />
        <${TextField} name="handler" label="Handler" value=${filters.handler} placeholder="a destination’s name" problem=${problem} />
        <${Choice} name="class" label="Class" value=${filters.class} options=${FAILURES.map((name) => [name, name])} />
        <button type="button" aria-expanded=${more} aria-controls="more-filters" onClick=${() => setMore(!more)}>${more ? "Fewer filters" : "More filters"}</button>
        ${FILTERS.some((name) => filters[name]) && html`<a class="button plain" href="/dead-letters">Clear</a>`}
      </div>
      <div class="more" id="more-filters" hidden=${!more}>
        <${TextField} name="type" label="Type" value=${filters.type} placeholder="order-placed" problem=${problem} />
        <${TimeField} name="from" label="Occurred from" value=${filters.from} />
        <${TimeField} name="to" label="Occurred before" value=${filters.to} />
      </div>
    </form>`;
}

// Count says what the figures are: the whole, or of what was read.
function Count({ counted, read, dead }) {
  const looked = `Errors are grouped from the ${read.more ? "newest " : ""}${plural(read.messages.length, "message")} with a dead letter that ${read.messages.length === 1 ? "was" : "were"} read.`;
  if (!mayOperate()) return html`<p class="muted">${looked} The figures are of these${read.more ? "; there are more" : ""}.</p>`;
  const { data } = counted;
  return html`
    <p class="muted">${data ? html`<strong>${data.more ? "At least " : ""}${plural(data.matched, "dead letter")}</strong> ${data.matched === 1 ? "fits" : "fit"}, counted <${Time} at=${data.at} />. ` : "Counting … "}${looked}</p>
    ${data && dead !== undefined && data.dead !== undefined && dead !== data.dead && html`
      <${Notice}>The number of dead letters has changed since they were counted. <button type="button" class="inline" onClick=${counted.refresh}>Count again</button><//>`}`;
}

function Group({ group: g, narrow, exactly }) {
  const id = `group-${g.handler}-${g.class}`;
  const here = { handler: g.handler, class: g.class };
  return html`
    <section class="card letters" aria-labelledby=${id}>
      <header>
        <h2 id=${id}>${g.handler} <span class="faint">${g.class}</span></h2>
        <${State} state="dead-letter" word=${exactly && g.count != null ? plural(g.count, "dead letter") : `${count(g.read)} read`} />
        <div class="aside tools">
          <button type="button" class="plain" onClick=${() => narrow(here)}>Only these<span class="hidden"> of ${g.handler}, class ${g.class}</span></button>
          ${mayOperate() && html`<button type="button" onClick=${() => narrow(here, true)}>${icons.replay()}Replay …<span class="hidden"> those of ${g.handler}, class ${g.class}</span></button>`}
        </div>
        <p class="small faint">${classMeaning(g.class)}</p>
      </header>
      <ul class="errors">
        ${g.errors.map((e) => html`
          <li key=${e.text}>
            <p class="text">${e.text || "no error was told"}</p>
            <p class="small faint"><span>${count(e.read)} of those read, the latest <${Time} at=${e.latest} /></span>${textOf(e).length > 3 && html`
              <button type="button" class="inline" onClick=${() => narrow({ ...here, q: textOf(e) })}>Only this error</button>`}</p>
            <p class="small">${e.letters.map((m) => html`<a key=${m.id} href=${path("messages", m.id)}>${m.type} <span class="id">${m.id}</span></a>`)}</p>
          </li>`)}
        ${g.errors.length === 0 && html`<li class="small faint">None of these is among the messages that were read. “Only these” reads them.</li>`}
      </ul>
    </section>`;
}
