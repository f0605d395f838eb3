import { html, useState } from "../lib/preact.js";
import { path, post } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { mayOperate } from "../lib/session.js";
import { announce } from "./notice.js";
import { ReasonDialog } from "./reason-dialog.js";

// What an operator may do to one delivery: whether its state allows it, what the question says, and what is said when it is done.
const ACTIONS = {
  replay: {
    word: "Replay …", verb: "Replay", example: "the receiver was mended",
    title: (d) => `Replay the delivery to ${d.handler}?`,
    allowed: (d) => d.state === "dead-letter",
    says: () => html`
      <p>It returns to pending, and its next attempt is due at once. The message keeps its id and its bytes; the count of charged attempts begins anew.</p>
      <p class="muted">A target that handled it in spite of the failure knows it again by its id.</p>`,
    done: () => "Replayed: it is pending again.",
  },
  skip: {
    word: "Skip …", verb: "Skip it", example: "the order was cancelled by telephone", danger: true,
    title: (d) => `Pass over the delivery to ${d.handler}?`,
    allowed: (d, m) => d.state === "dead-letter" && Boolean(m.ordering_key) && !d.resend_of && !["skipped", "cancelled"].includes(d.failure_class),
    says: (d, m) => html`
      <p>It stays a dead letter, of the class <code>skipped</code>, and no longer holds back its ordering key: the next message of <code>${m.ordering_key}</code> is delivered.</p>
      <p class="muted">It can still be replayed later, out of its order.</p>`,
    done: () => "Skipped: its ordering key goes on.",
  },
  cancel: {
    word: "Cancel …", verb: "Give it up", example: "sent by mistake", danger: true,
    title: (d) => `Give up the delivery to ${d.handler}?`,
    allowed: (d) => d.state === "pending",
    says: () => html`
      <p>No further attempt is made: it becomes a dead letter of the class <code>cancelled</code>, and holds back nothing.</p>
      <p class="muted">It can be replayed later. If an attempt begins before you confirm, nothing is changed.</p>`,
    done: () => "Given up: it is a dead letter of the class cancelled.",
  },
  resend: {
    word: "Send again …", verb: "Send it again", example: "the receiver lost it",
    title: (d) => `Send the message to ${d.handler} again?`,
    allowed: (d) => d.state === "dispatched",
    says: () => html`
      <p>A new delivery of the same message is made, outside the order. It names the one that it sends again.</p>
      <p class="muted">The id stays the same: a target that suppresses repeats answers without doing anything twice, and a handler inside Posthorn is shown as dispatched, suppressed.</p>`,
    done: (_, answer) => `Sent again: ${answer.deliveries?.length === 1 ? `delivery ${answer.deliveries[0]} is` : `${plural(answer.deliveries?.length ?? 0, "delivery", "deliveries")} are`} pending.`,
  },
};

const perform = (name, d, m, reason) =>
  name === "resend"
    ? post(`/v1${path("messages", m.id, "resend")}`, { handler: d.handler, reason })
    : post(`/v1${path("deliveries", d.id, name)}`, { reason });

// DeliveryActions offers what the delivery's state allows. The server decides; a viewer is offered nothing.
export function DeliveryActions({ delivery: d, message: m, changed }) {
  const [asked, setAsked] = useState("");
  const [told, setTold] = useState("");
  if (!mayOperate()) return null;
  const action = ACTIONS[asked];
  const close = (answer) => {
    if (answer) {
      const sentence = action.done(d, answer);
      setTold(sentence);
      announce(sentence);
    }
    setAsked("");
    changed(); // after a refusal too: the delivery may have changed meanwhile
  };
  const offered = Object.entries(ACTIONS).filter(([, { allowed }]) => allowed(d, m));
  return html`
    <div class="delivery-actions">
      ${offered.map(([name, { word, danger }]) => html`
        <button key=${name} type="button" class=${danger ? "danger" : ""} onClick=${() => setAsked(name)}>${word}<span class="hidden"> delivery to ${d.handler}</span></button>`)}
      ${told && html`<p class="small muted told">${told}</p>`}
    </div>
    ${action && html`
      <${ReasonDialog} title=${action.title(d)} verb=${action.verb} danger=${action.danger} example=${action.example}
        run=${(reason) => perform(asked, d, m, reason)} onClose=${close}>${action.says(d, m)}<//>`}`;
}
