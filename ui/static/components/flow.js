import { html, useState } from "../lib/preact.js";
import { path, post, remove } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { useCommand } from "../lib/query.js";
import { mayOperate } from "../lib/session.js";
import { Dialog, Field } from "./dialog.js";
import { icons } from "./icons.js";
import { ProblemBox, announce } from "./notice.js";
import { State } from "./state.js";

const STATE_WORDS = { flowing: ["dispatched", "Flowing"], paused: ["held", "Paused"], disabled: ["dead-letter", "Disabled"] };

// Flow shows whether a destination's lane flows, and lets it flow or hold.
export function Flow({ destination: d, changed, children }) {
  const act = useCommand(async (verb) => {
    await post(`/v1${path("destinations", d.name, verb)}`);
    announce(`${d.name} is ${verb === "pause" ? "paused" : "resumed"}`);
    await changed();
  });
  const [state, word] = STATE_WORDS[d.state] ?? (d.hold ? STATE_WORDS.paused : STATE_WORDS.flowing);
  const flowing = state === "dispatched";
  return html`
    <div class="flow">
      <${State} state=${state} word=${word} />
      ${d.hold && html`<p class="small muted">${d.hold}</p>`}
      ${mayOperate() && html`<div class="flow-actions">
        ${flowing
          ? html`<button type="button" disabled=${act.busy} onClick=${() => act.run("pause")}>${icons.pause()}Pause<span class="hidden"> ${d.name}</span></button>`
          : html`<button type="button" disabled=${act.busy} onClick=${() => act.run("resume")}>${icons.play()}Resume<span class="hidden"> ${d.name}</span></button>`}
        ${children}
      </div>`}
      <${ProblemBox} problem=${act.problem} />
    </div>`;
}

// DeleteDestination asks first, and says what it will do.
export function DeleteDestination({ destination: d, lane, onClose }) {
  const [typed, setTyped] = useState("");
  const drop = useCommand(async () => {
    const done = await remove(`/v1${path("destinations", d.name)}`);
    announce(`${d.name} is deleted`);
    onClose(done ?? {});
  });
  const open = (lane?.pending ?? 0) + (lane?.processing ?? 0);
  return html`
    <${Dialog} title=${`Delete ${d.name}?`} onClose=${() => onClose(null)} lock=${drop.busy} onSubmit=${() => typed === d.name && drop.run()}>
      <div class="consequences">
        <p>${open > 0
          ? html`<strong>${plural(open, "delivery", "deliveries")} still to be made</strong> will not be: they become dead letters of the class <code>cancelled</code>.`
          : "Nothing is pending for it now. What is staged until you confirm becomes a dead letter of the class cancelled."}</p>
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
