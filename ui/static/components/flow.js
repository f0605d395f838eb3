import { html, useState } from "../lib/preact.js";
import { path, post, remove } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { useCommand } from "../lib/query.js";
import { mayOperate } from "../lib/session.js";
import { Dialog, Field } from "./dialog.js";
import { icons } from "./icons.js";
import { Breaker } from "./lanes.js";
import { ProblemBox, announce } from "./notice.js";
import { ReasonDialog } from "./reason-dialog.js";
import { State } from "./state.js";

// backfills: a destination is held until the last slice of its past is in.
export const backfills = (destination) => destination.hold.startsWith("backfill");

const STATE_WORDS = { flowing: ["dispatched", "Flowing"], paused: ["held", "Paused"], disabled: ["dead-letter", "Disabled"] };

// Flow shows whether a destination's lane flows, and lets it flow or hold. lane, where there is one, tells of its breaker.
export function Flow({ destination: d, lane, changed, children }) {
  const [pausing, setPausing] = useState(false);
  const resume = useCommand(async () => {
    await post(`/v1${path("destinations", d.name, "resume")}`);
    announce(down ? `A probe of ${d.name} goes out` : `${d.name} is resumed`);
    await changed();
  });
  const paused = async (done) => {
    setPausing(false);
    if (!done) return;
    announce(`${d.name} is paused`);
    await changed();
  };
  const [state, word] = STATE_WORDS[d.state] ?? (d.hold ? STATE_WORDS.paused : STATE_WORDS.flowing);
  const flowing = state === "dispatched";
  const filling = backfills(d); // it ends by itself; nobody can let it flow before
  const down = flowing && lane && lane.breaker.state !== "closed";
  return html`
    <div class="flow">
      ${down ? html`<div><${Breaker} breaker=${lane.breaker} /></div>` : html`<${State} state=${filling ? "held" : state} word=${filling ? "Held" : word} />`}
      ${d.hold && html`<p class="small muted">${d.hold}</p>`}
      ${mayOperate() && html`<div class="flow-actions">
        ${down && lane.breaker.state === "open" && html`<button type="button" disabled=${resume.busy} onClick=${resume.run}>${icons.replay()}Probe now<span class="hidden"> ${d.name}</span></button>`}
        ${flowing
          ? html`<button type="button" onClick=${() => setPausing(true)}>${icons.pause()}Pause …<span class="hidden"> ${d.name}</span></button>`
          : !filling && html`<button type="button" disabled=${resume.busy} onClick=${resume.run}>${icons.play()}Resume<span class="hidden"> ${d.name}</span></button>`}
        ${children}
      </div>`}
      <${ProblemBox} problem=${resume.problem} />
      ${pausing && html`
        <${ReasonDialog} title=${`Pause ${d.name}?`} verb="Hold its deliveries" required=${false} example="month's end" onClose=${paused}
          run=${(reason) => post(`/v1${path("destinations", d.name, "pause")}`, reason ? { reason } : {})}>
          <p>Its deliveries are held: they stay pending and visible, and none is dropped. Attempts that are under way finish.</p>
          <p class="muted">When it is resumed it begins slowly, and the order of each ordering key is kept.</p><//>`}
    </div>`;
}

// deletedWords is what is said when it is done.
export const deletedWords = (name, done) =>
  `${name} is deleted. ${done?.cancelled > 0 ? `${plural(done.cancelled, "pending delivery was", "pending deliveries were")} cancelled.` : "Nothing was pending for it."}`;

// DeleteDestination asks first, and says what it will do.
export function DeleteDestination({ destination: d, lane, onClose }) {
  const [typed, setTyped] = useState("");
  const drop = useCommand(async () => {
    const done = await remove(`/v1${path("destinations", d.name)}`);
    announce(deletedWords(d.name, done));
    onClose(done ?? {});
  });
  const pending = lane?.pending ?? 0;
  return html`
    <${Dialog} title=${`Delete ${d.name}?`} onClose=${() => onClose(null)} lock=${drop.busy} onSubmit=${() => typed === d.name && drop.run()}>
      <div class="consequences">
        <p>${pending > 0
          ? html`<strong>${plural(pending, "pending delivery", "pending deliveries")} will be cancelled</strong>: ${pending === 1 ? "it becomes a dead letter" : "they become dead letters"} of the class <code>cancelled</code>.`
          : "Nothing is pending for it now. What is staged until you confirm becomes a dead letter of the class cancelled."}</p>
        ${lane?.processing > 0 && html`<p>${plural(lane.processing, "attempt")} under way ${lane.processing === 1 ? "is finished and settled" : "are finished and settled"} as usual.</p>`}
        <p class="muted">Its route and signing secret are removed for good. Messages, and what was delivered already, stay. To hold deliveries for a while, pause it instead.</p>
      </div>
      <${Field} label=${`Type ${d.name} to confirm`} render=${(props) => html`
        <input ...${props} value=${typed} autocomplete="off" spellcheck=${false} onInput=${(event) => setTyped(event.target.value)} />`} />
      <${ProblemBox} problem=${drop.problem} />
      <div class="buttons">
        <button type="button" onClick=${() => onClose(null)} disabled=${drop.busy}>Keep it</button>
        <button class="danger" disabled=${drop.busy || typed !== d.name}>${drop.busy ? "Deleting …" : "Delete the destination"}</button>
      </div>
    <//>`;
}
