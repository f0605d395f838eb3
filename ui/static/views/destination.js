import { html, useState } from "../lib/preact.js";
import { get, path } from "../lib/api.js";
import { ageNow } from "../lib/backlog.js";
import { count, rate, share, size, span } from "../lib/format.js";
import { useNow, useQuery } from "../lib/query.js";
import { mayOperate } from "../lib/session.js";
import { every } from "../lib/pace.js";
import { watchBacklog } from "../lib/realtime/index.js";
import * as shapes from "../lib/shapes.js";
import { BackfillDialog, BackfillProgress } from "../components/backfill.js";
import { DeleteDestination, Flow, backfills, deletedWords } from "../components/flow.js";
import { Breaker, Slots } from "../components/lanes.js";
import { MessageTable } from "../components/messages.js";
import { Freshness, Loading, ProblemBox } from "../components/notice.js";
import { State } from "../components/state.js";
import { Reshape } from "../components/reshape.js";
import { Time } from "../components/time.js";
import { go } from "../router.js";

export function Destination({ name, backlog }) {
  const read = async (signal) => shapes.destination(await get(`/v1${path("destinations", name)}`, { signal }));
  const { data, problem, refresh } = useQuery(`destination ${name}`, read, { every: every.destination });
  const [deleting, setDeleting] = useState(false);
  const [filling, setFilling] = useState(false);
  const [filled, setFilled] = useState(null);
  const began = (done) => {
    setFilling(false);
    if (!done) return;
    setFilled(done);
    refresh();
  };
  const lane = backlog.data?.lanes.find((l) => l.handler === name);
  const asked = (done) => {
    setDeleting(false);
    if (done) go("/destinations", { state: { told: deletedWords(name, done) } });
  };
  return html`
    <header class="head"><h1 tabindex="-1">${name}</h1></header>
    <${ProblemBox} problem=${problem} retry=${problem?.status === 404 ? undefined : refresh} kept=${Boolean(data)} />
    <${Freshness} value=${data?.freshness} />
    ${!data && !problem && html`<${Loading} what="the destination" />`}
    ${data && html`
      <section class="card facts-card" aria-label="Destination">
        <${Flow} destination=${data} lane=${lane} changed=${refresh}>
          ${!backfills(data) && html`<button type="button" onClick=${() => setFilling(true)}>Backfill …</button>`}
          <button type="button" class="danger" onClick=${() => setDeleting(true)}>Delete …</button>
        <//>
        <dl class="facts">
          <div class="wide"><dt>${{ webhook: "URL", file: "File", pull: "Asked for at" }[data.kind]}</dt><dd><code>${data.url ?? data.path ?? `/v1/pull/${data.name}`}</code></dd></div>
          <div><dt>Kind</dt><dd>${data.kind}</dd></div>
          <div><dt>Event types</dt><dd class="types">${data.types.map((type) => html`<code key=${type}>${type}</code>`)}</dd></div>
          ${data.concurrency > 0 && html`<div><dt>Concurrency</dt><dd>${data.concurrency}</dd></div>`}
          ${data.timeout && html`<div><dt>Time-out</dt><dd>${data.timeout}</dd></div>`}
          ${data.order && html`<div><dt>A dead letter</dt><dd>${data.order === "skip" ? "lets its ordering key go on" : "holds back its ordering key"}</dd></div>`}
          <div><dt>Created</dt><dd><${Time} at=${data.created} />${data.created_by ? html` <span class="faint">by ${data.created_by}</span>` : null}</dd></div>
        </dl>
        ${mayOperate() && html`<${Reshape} destination=${data} changed=${refresh} />`}
      </section>
      ${(filled || backfills(data)) && html`<${BackfillProgress} key=${filled?.started_at ?? ""} name=${name} ended=${refresh} />`}
      ${lane && html`<${Lane} lane=${lane} backlog=${backlog.data} />`}
      <${Latest} name=${name} />`}
    ${filling && html`<${BackfillDialog} destination=${data} onClose=${began} />`}
    ${deleting && html`<${DeleteDestination} destination=${data} lane=${lane} onClose=${asked} />`}`;
}

function Lane({ lane, backlog }) {
  const now = useNow(1000);
  const oldest = ageNow(lane, backlog, now);
  return html`
    <section class="card facts-card" aria-labelledby="lane">
      <h2 id="lane">Lane</h2>
      <dl class="facts">
        <div><dt>Breaker</dt><dd><${Breaker} breaker=${lane.breaker} /></dd></div>
        <div><dt>Slots in use</dt><dd><${Slots} busy=${lane.busy} slots=${lane.slots} />${lane.width < lane.slots && html`<div class="small muted">ramping: ${count(lane.width)} may be used now</div>`}</dd></div>
        <div><dt>Rate</dt><dd>${lane.rate > 0 ? `at most ${rate(lane.rate)} attempts/s` : html`<span class="faint">no bound</span>`}</dd></div>
        <div><dt>Pending</dt><dd>${count(lane.pending)}</dd></div>
        ${lane.held > 0 && html`<div><dt>Held</dt><dd><${State} state="held" word=${count(lane.held)} />${lane.heldBytes != null && html`<div class="small muted">${lane.heldEstimated ? "about " : ""}${size(lane.heldBytes)} of payload</div>`}</dd></div>`}
        <div><dt>Oldest pending</dt><dd>${oldest == null ? "–" : span(oldest)}</dd></div>
        <div><dt>Dead letters</dt><dd>${lane.deadLetters ? html`<a class="bad" href=${`/dead-letters?handler=${encodeURIComponent(lane.handler)}`}>${count(lane.deadLetters)}</a>` : "0"}</dd></div>
        <div><dt>Success rate, 5 min</dt><dd>${share(lane.success)}</dd></div>
        <div><dt>Attempt takes, p50 / p99</dt><dd>${lane.p50 == null ? "–" : `${span(lane.p50)} / ${span(lane.p99)}`}</dd></div>
      </dl>
    </section>`;
}

function Latest({ name }) {
  const read = async (signal) => shapes.messages(await get("/v1/messages", { query: { handler: name, limit: 10 }, signal })).messages;
  const { data, problem, refresh } = useQuery(`latest ${name}`, read, { every: every.messages, told: watchBacklog });
  return html`
    <section class="card" aria-labelledby="latest">
      <header><h2 id="latest">Latest messages</h2><p class="aside"><a href=${`/messages?handler=${encodeURIComponent(name)}`}>All of them</a></p></header>
      <${ProblemBox} problem=${problem} retry=${refresh} />
      ${data?.length === 0 && html`<p class="loading">Nothing was staged for it yet.</p>`}
      ${data?.length > 0 && html`<${MessageTable} messages=${data} label=${`Latest messages for ${name}`} />`}
    </section>`;
}
