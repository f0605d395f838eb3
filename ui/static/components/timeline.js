import { html } from "../lib/preact.js";
import { clock, exact, plural, span } from "../lib/format.js";
import { useNow } from "../lib/query.js";
import { icons } from "./icons.js";
import { State, classMeaning } from "./state.js";
import { Time } from "./time.js";

// DeliveryTimeline tells one delivery from its staging to how it stands: every attempt that failed with its evidence, then the present.
export function DeliveryTimeline({ delivery: d, message, hold }) {
  return html`
    <article class="delivery" aria-label=${`Delivery to ${d.handler}`}>
      <header>
        <h3><a class="main-link" href=${`/messages?handler=${encodeURIComponent(d.handler)}`}>${d.handler}</a></h3>
        <${State} state=${d.state} />
        <p class="small faint">delivery ${d.id}${d.attempt > 0 ? `, ${plural(d.attempt, "attempt")}, ${d.charged} charged` : ""}${d.fence > 0 ? `, fence ${d.fence}` : ""}</p>
      </header>
      <ol class="timeline">
        <${Step} icon="messages" at=${message.occurred} title="Staged" />
        ${happened(d).map((step) => step.replayed_at
          ? html`<${Step} icon="back" at=${Date.parse(step.replayed_at)} title=${`Replayed by ${step.actor}`}><p class="error">${step.reason}</p><//>`
          : html`<${Attempt} attempt=${step} />`)}
        <${Present} delivery=${d} hold=${hold} />
      </ol>
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
function Present({ delivery: d, hold }) {
  const now = useNow(1000);
  const held = Boolean(hold || d.held);
  switch (d.state) {
    case "dispatched":
      return html`<${Step} icon="dispatched" state="dispatched" at=${d.completed} title=${`Attempt ${d.attempt}: dispatched`}>
        <p class="small faint">${d.suppressed ? "the handler had handled this message before" : "accepted by the target"}</p><//>`;
    case "dead-letter":
      return html`<${Step} icon="dead-letter" state="dead-letter" at=${d.completed} title=${`Dead letter: ${d.failure_class}`}>
        ${d.last_error && html`<p class="error">${d.last_error}</p>`}
        <p class="small faint">${classMeaning(d.failure_class)}. It stays here until it is replayed.</p><//>`;
    case "processing":
      return html`<${Step} icon="processing" state="processing" title=${`Attempt ${d.attempt}: under way`} />`;
    default:
      return html`<${Step} icon=${held ? "held" : "pending"} state=${held ? "held" : "pending"} title=${waiting(d, held, now)}>
        ${hold && html`<p class="error">${hold}</p>`}
        ${d.next != null && d.next > now && html`<p class="small faint"><${Time} at=${d.next} both /></p>`}<//>`;
  }
}

function waiting(d, held, now) {
  if (held) return "Held until its lane flows";
  if (d.blocked) return "Waits for an earlier message of its ordering key";
  if (d.next != null && d.next > now) return d.attempt > 0 ? `Next attempt in ${span(d.next - now)}` : `Due in ${span(d.next - now)}`;
  return "Due; waits for a free slot";
}
