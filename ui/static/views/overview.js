import { html, useMemo } from "../lib/preact.js";
import { get } from "../lib/api.js";
import { ageNow } from "../lib/backlog.js";
import { clock, count, rate, share, span } from "../lib/format.js";
import { useNow, useQuery } from "../lib/query.js";
import { watchBacklog } from "../lib/realtime/index.js";
import * as shapes from "../lib/shapes.js";
import { STEP, throughput } from "../lib/throughput.js";
import { Alerts } from "../components/alerts.js";
import { Throughput } from "../components/chart.js";
import { Empty } from "../components/copy.js";
import { icons } from "../components/icons.js";
import { Lanes } from "../components/lanes.js";
import { Freshness, Loading, ProblemBox } from "../components/notice.js";
import { State } from "../components/state.js";
import { Time } from "../components/time.js";
import { FIRST_MESSAGE } from "../components/examples.js";

export function Overview({ backlog }) {
  const { data, problem, refresh } = backlog;
  return html`
    <header class="head"><h1 tabindex="-1">Overview</h1></header>
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    <${Freshness} value=${data?.freshness} />
    <${Alerts} />
    ${data ? html`
      <${Figures} backlog=${data} />
      <div class="halves"><${Traffic} backlog=${data} /><${Recent} /></div>
      <section class="card" aria-labelledby="lanes">
        <header><h2 id="lanes">Lanes</h2><p class="aside">one queue for each handler</p></header>
        <${Lanes} backlog=${data} />
      </section>` : !problem && html`<${Loading} what="the backlog" />`}`;
}

function Figures({ backlog }) {
  const now = useNow(1000);
  const t = backlog.total;
  const oldest = ageNow(t, backlog, now);
  return html`
    <dl class="figures" aria-label="Backlog">
      <${Figure} name="Pending" value=${count(t.pending)} href="/messages?state=pending" note=${t.held ? `${count(t.held)} held` : "none held"} />
      <${Figure} name="Processing" value=${count(t.processing)} href="/messages?state=processing" note="claimed now" />
      <${Figure} name="Dead letters" value=${count(t.deadLetters)} href="/dead-letters" bad=${t.deadLetters > 0} note=${t.deadLetters ? "given up until replayed" : "nothing given up"} />
      <${Figure} name="Oldest pending" value=${oldest == null ? "–" : span(oldest)} note=${oldest == null ? "nothing waits" : "due for so long"} />
      <${Figure} name="Success rate" value=${share(t.success)} note=${t.success == null ? "no attempt in 5 min" : "of attempts in 5 min"} />
      <${Figure} name="Attempt takes" value=${t.p50 == null ? "–" : span(t.p50)} note=${t.p99 == null ? "p50" : `p50; p99 ${span(t.p99)}`} />
    </dl>`;
}

const Figure = ({ name, value, note, href, bad }) => html`
  <div class="figure">
    <dt>${href ? html`<a href=${href}>${name}</a>` : name}</dt>
    <dd class=${bad ? "value bad" : "value"}>${bad && icons["dead-letter"](18)}<span>${units(value)}</span></dd>
    <dd class="note">${note}</dd>
  </div>`;

// units sets the letters of a figure smaller than its digits.
const units = (value) => value.split(/\s*([a-z%]+)\s*/).map((part, i) => (i % 2 ? html`<small>${part}</small>` : part));

function Traffic({ backlog }) {
  const tick = Math.floor(useNow(1000) / STEP);
  const data = useMemo(() => throughput.series(Date.now()), [backlog, tick]);
  const recent = throughput.recent(Date.now());
  const since = throughput.since;
  const summary = recent
    ? `Throughput over ten minutes. In the last half minute ${rate(recent.dispatched)} deliveries dispatched and ${rate(recent.failed)} attempts failed a second.`
    : "Throughput over ten minutes. Nothing is known yet.";
  return html`
    <section class="card" aria-labelledby="throughput">
      <header>
        <h2 id="throughput">Throughput</h2>
        <p class="legend small"><span data-series="dispatched">dispatched ${recent ? rate(recent.dispatched) : "–"}/s</span>
          <span data-series="failed">failed attempts ${recent ? rate(recent.failed) : "–"}/s</span></p>
        <p class="aside">${since ? `read by this tab since ${clock(since).slice(0, 5)}` : "begins now"}</p>
      </header>
      <${Throughput} data=${data} summary=${summary} />
    </section>`;
}

const readRecent = async (signal) => shapes.messages(await get("/v1/messages", { query: { limit: 8 }, signal })).messages;

function Recent() {
  const { data, problem, refresh } = useQuery("recent", readRecent, { watch: watchBacklog });
  return html`
    <section class="card" aria-labelledby="recent">
      <header><h2 id="recent">Happening now</h2><p class="aside"><a href="/messages">All messages</a></p></header>
      <${ProblemBox} problem=${problem} retry=${refresh} />
      ${!data && !problem && html`<${Loading} what="messages" />`}
      ${data?.length === 0 && html`<${Empty} title="No message yet" command=${FIRST_MESSAGE()}>
        Change a document and stage what it emits, in one transaction:<//>`}
      <ul class="recent">
        ${data?.map((m) => html`
          <li key=${m.id}>
            <${State} state=${m.state} />
            <a class="main-link" href="/messages/${encodeURIComponent(m.id)}">${m.type}</a>
            <span class="faint to">${m.deliveries.map((d) => d.handler).join(", ")}</span>
            <span class="faint when"><${Time} at=${m.occurred} /></span>
          </li>`)}
      </ul>
    </section>`;
}
