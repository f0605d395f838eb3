import { html } from "../lib/preact.js";
import { clock, exact, plural, span } from "../lib/format.js";
import { useNow } from "../lib/query.js";
import { DeliveryActions } from "./delivery-actions.js";
import { icons } from "./icons.js";
import { Breaker } from "./lanes.js";
import { State, classMeaning } from "./state.js";
import { Time } from "./time.js";

// DeliveryTimeline tells one delivery from its staging to how it stands: every attempt that failed with its evidence, then the present.
export function DeliveryTimeline({ delivery: d, message, lane, changed }) {
  return html`
    <article class="delivery" id=${`delivery-${d.id}`} aria-label=${`Delivery ${d.id} to ${d.handler}`}>
      <header>
        <h3><a class="main-link" href=${`/messages?handler=${encodeURIComponent(d.handler)}`}>${d.handler}</a></h3>
        <${State} state=${d.state} />
        <p class="small faint">delivery ${d.id}${d.attempt > 0 ? `, ${plural(d.attempt, "attempt")}, ${d.charged} charged` : ""}${d.fence > 0 ? `, fence ${d.fence}` : ""}</p>
      </header>
      <ol class="timeline">
        ${d.resend_of
          ? html`<${Step} icon="replay" at=${Date.parse(d.created_at)} title=${`Sends delivery ${d.resend_of} again`}>
              <p class="small faint">outside the order, under the same message id</p><//>`
          : html`<${Step} icon="messages" at=${message.occurred} title="Staged" />`}
        ${happened(d).map((step) => (step.replayed_at ? html`<${Replay} replay=${step} />` : html`<${Attempt} attempt=${step} />`))}
        <${Present} delivery=${d} message=${message} lane=${lane} />
      </ol>
      <${DeliveryActions} delivery=${d} message=${message} changed=${changed} />
    </article>`;
}

// happened is attempts and replays in the order of time.
const happened = (d) =>
  [...d.attempts, ...(d.replays ?? [])].sort((a, b) => Date.parse(a.started_at ?? a.replayed_at) - Date.parse(b.started_at ?? b.replayed_at));

const Step = ({ icon, state, at, title, children }) => html`
  <li data-state=${state}>
    <span class="mark">${icons[icon]()}</span>
    <div><p class="line"><strong>${title}</strong>${at != null && html`<time class="faint" datetime=${new Date(at).toISOString()} title=${exact(at)}>${clock(at, true)}</time>`}</p>${children}</div>
  </li>`;

const Replay = ({ replay: r }) => html`
  <${Step} icon="replay" at=${Date.parse(r.replayed_at)} title=${`Replayed by ${r.actor}`}>
    <p class="error">${r.reason}</p>
    ${r.failure && html`<p class="small faint">in answer to ${r.failure}</p>`}
  <//>`;

function Attempt({ attempt: a }) {
  const what = a.status ? `${a.class}, status ${a.status}` : a.class;
  return html`
    <${Step} icon="attempt" state=${a.class === "delivered" ? "dispatched" : "failed"} at=${a.started} title=${`Attempt ${a.attempt}: ${what}`}>
      <p class="small faint">${[classMeaning(a.class), a.took != null && `took ${span(a.took)}`, a.charged === false && "not charged"].filter(Boolean).join("; ")}</p>
      ${a.error && html`<p class="error">${a.error}</p>`}
      ${a.excerpt && html`<details><summary class="small">What the target answered</summary><pre class="excerpt">${a.excerpt}</pre></details>`}
    <//>`;
}

// Present is how the delivery stands now, and what happens next.
function Present({ delivery: d, message: m, lane }) {
  const now = useNow(1000);
  const hold = lane?.hold ?? "";
  const down = lane && lane.breaker.state !== "closed";
  const held = Boolean(hold || d.held);
  switch (d.state) {
    case "dispatched":
      return html`<${Step} icon="dispatched" state="dispatched" at=${d.completed} title=${`Attempt ${d.attempt}: dispatched${d.suppressed ? ", suppressed" : ""}`}>
        <p class="small faint">${d.suppressed ? "the handler had handled this message before, so it did nothing again" : "accepted by the target"}</p><//>`;
    case "dead-letter":
      return html`<${Step} icon="dead-letter" state="dead-letter" at=${d.completed} title=${`Dead letter: ${d.failure_class}`}>
        ${d.last_error && html`<p class="error">${d.last_error}</p>`}
        <p class="small faint">${after(d, m)}</p><//>`;
    case "processing":
      return html`<${Step} icon="processing" state="processing" title=${`Attempt ${d.attempt}: under way`}>
        ${d.lease_owner && html`<p class="small faint">held by <code>${d.lease_owner}</code> until <${Time} at=${d.lease} both /></p>`}<//>`;
    default:
      return html`<${Step} icon=${held ? "held" : "pending"} state=${held ? "held" : "pending"} title=${waiting(d, held, down, now)}>
        ${hold && html`<p class="error">${hold}</p>`}
        ${d.blocked && m.ordering_key && html`<p class="small faint">The order of <code>${m.ordering_key}</code> is kept: what was committed before it is unfinished. A dead letter that is in its way can be replayed or skipped.</p>`}
        ${held && lane?.slots !== 0 && html`<p class="small faint">It is kept, and nothing is attempted, until somebody lets <a href=${`/destinations/${encodeURIComponent(d.handler)}`}>${d.handler}</a> flow.</p>`}
        ${!held && !d.blocked && down && html`<div class="small"><${Breaker} breaker=${lane.breaker} /></div><p class="small faint">Nothing but one probe at a time goes out; what waits is not touched, and costs no attempt.</p>`}
        ${d.next != null && d.next > now && html`<p class="small faint"><${Time} at=${d.next} both /></p>`}<//>`;
  }
}

// after is what a dead letter means, and what it holds back.
function after(d, m) {
  const meaning = classMeaning(d.failure_class);
  const sentence = meaning ? `${meaning[0].toUpperCase()}${meaning.slice(1)}. ` : "";
  const blocks = m.ordering_key && !d.resend_of && !["skipped", "cancelled"].includes(d.failure_class);
  return `${sentence}It stays here until it is replayed.${blocks ? " Where the destination keeps order, it holds back the later messages of its ordering key until then, or until it is skipped." : ""}`;
}

function waiting(d, held, down, now) {
  if (held) return "Held until its lane flows";
  if (d.blocked) return "Waits for an earlier message of its ordering key";
  if (down) return "Waits until its target can be reached";
  if (d.next != null && d.next > now) return d.attempt > 0 ? `Next attempt in ${span(d.next - now)}` : `Due in ${span(d.next - now)}`;
  return "Due; waits for a free slot";
}
