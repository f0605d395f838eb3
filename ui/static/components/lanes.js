import { html } from "../lib/preact.js";
import { ageNow } from "../lib/backlog.js";
import { count, share, span } from "../lib/format.js";
import { useNow } from "../lib/query.js";
import { Empty } from "./copy.js";
import { Runbook } from "./record-link.js";
import { State } from "./state.js";
import { Time } from "./time.js";
import { FIRST_DESTINATION } from "./examples.js";

// Slots shows how much of a lane's concurrency is in use.
export const Slots = ({ busy, slots }) => html`
  <span class="slots"><meter min="0" max=${Math.max(1, slots)} value=${busy} aria-label="slots in use"></meter>
    <span>${count(busy)} of ${count(slots)}</span></span>`;

// Breaker says whether a lane's target can be reached, since when not, and when it is tried again.
export function Breaker({ breaker: b }) {
  if (b.state === "closed") return html`<${State} state="dispatched" word="Closed" />`;
  return html`
    <${State} state="held" word=${b.state === "probing" ? "Unreachable, probing" : "Unreachable"} />
    <div class="small muted">since <${Time} at=${b.since} />${b.state === "probing" ? "; one probe is out" : b.next ? html`; next probe <${Time} at=${b.next} />` : ""}</div>`;
}

export const LaneState = ({ hold, runbook, breaker }) =>
  hold
    ? html`<${State} state="held" /><div class="small muted">${hold}${runbook && html` <${Runbook} id=${runbook} />`}</div>`
    : breaker.state === "closed" ? html`<${State} state="dispatched" word="Flowing" />` : html`<${Breaker} breaker=${breaker} />`;

// Lanes shows every handler's queue, the ones that need somebody first.
export function Lanes({ backlog }) {
  const now = useNow(1000);
  if (backlog.lanes.length === 0) {
    return html`<${Empty} title="No lane yet" command=${FIRST_DESTINATION()}>
      A lane comes with each handler. Create a destination, here under Destinations or from a terminal:<//>`;
  }
  const urgency = (lane) => (lane.deadLetters > 0 ? 2 : 0) + (lane.hold || lane.breaker.state !== "closed" ? 1 : 0);
  const lanes = [...backlog.lanes].sort((a, b) => urgency(b) - urgency(a) || a.handler.localeCompare(b.handler));
  const most = Math.max(50, ...lanes.map((lane) => lane.pending));
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Lanes">
    <table class="table lanes" role="table">
      <thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Handler</th><th role="columnheader" scope="col">Flow</th><th role="columnheader" scope="col">Slots</th><th role="columnheader" scope="col">Pending</th>
        <th role="columnheader" scope="col" class="number">Oldest</th><th role="columnheader" scope="col" class="number">Dead letters</th>
        <th role="columnheader" scope="col" class="number">Success 5 min</th><th role="columnheader" scope="col" class="number">p50 / p99</th></tr></thead>
      <tbody role="rowgroup">
        ${lanes.map((lane) => html`
          <tr role="row" key=${lane.handler}>
            <th role="rowheader" scope="row"><a class="main-link" href=${`/messages?handler=${encodeURIComponent(lane.handler)}`}>${lane.handler}</a></th>
            <td role="cell" data-label="Flow"><${LaneState} hold=${lane.hold} breaker=${lane.breaker} /></td>
            <td role="cell" data-label="Slots"><${Slots} busy=${lane.busy} slots=${lane.slots} /></td>
            <td role="cell" data-label="Pending"><span class="bar-cell"><span class="bar-fill" style=${{ width: `${lane.pending ? Math.max(2, (100 * lane.pending) / most) : 0}%` }}></span>
              <span>${count(lane.pending)}</span></span></td>
            <td role="cell" data-label="Oldest" class="number">${ageNow(lane, backlog, now) == null ? html`<span class="faint">–</span>` : span(ageNow(lane, backlog, now))}</td>
            <td role="cell" data-label="Dead letters" class="number">${lane.deadLetters > 0
              ? html`<a class="bad" href=${`/dead-letters?handler=${encodeURIComponent(lane.handler)}`}>${count(lane.deadLetters)}</a>`
              : html`<span class="faint">0</span>`}</td>
            <td role="cell" data-label="Success" class="number">${share(lane.success)}</td>
            <td role="cell" data-label="p50 / p99" class="number">${lane.p50 == null ? html`<span class="faint">–</span>` : `${span(lane.p50)} / ${span(lane.p99)}`}</td>
          </tr>`)}
      </tbody>
    </table>
    </div>`;
}
