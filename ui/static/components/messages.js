import { html } from "../lib/preact.js";
import { path } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { State, stateWord } from "./state.js";
import { Time } from "./time.js";

// deliveriesOf says how a message's deliveries stand: who they are for when there are few, how many of each state otherwise.
function deliveriesOf({ deliveries }) {
  if (deliveries.length === 0) return "";
  if (deliveries.length <= 2) return deliveries.map((d) => d.handler).join(", ");
  const counts = new Map();
  for (const { state } of deliveries) counts.set(state, (counts.get(state) ?? 0) + 1);
  return `${plural(deliveries.length, "delivery", "deliveries")}: ${[...counts].map(([s, n]) => `${n} ${stateWord(s).toLowerCase()}`).join(", ")}`;
}

const trouble = ({ deliveries }) => deliveries.find((d) => d.last_error && d.state !== "dispatched")?.last_error ?? "";

// MessageTable lists messages. The roles repeat what the elements say, since a phone lays the rows out as blocks.
export const MessageTable = ({ messages, label }) => html`
  <table class="table messages" role="table" aria-label=${label}>
    <thead role="rowgroup">
      <tr role="row"><th role="columnheader" scope="col">State</th><th role="columnheader" scope="col">Message</th>
        <th role="columnheader" scope="col">Deliveries</th><th role="columnheader" scope="col" class="number">Occurred</th></tr>
    </thead>
    <tbody role="rowgroup">
      ${messages.map((m) => html`
        <tr role="row" key=${m.id}>
          <td role="cell" class="c-state"><${State} state=${m.state} /></td>
          <td role="cell" class="c-what">
            <a class="main-link" href=${path("messages", m.id)}>${m.type}</a>
            ${m.schema_version > 1 && html`<span class="faint"> v${m.schema_version}</span>`}
            <div class="id">${m.id}</div>
          </td>
          <td role="cell" class="c-to">
            <span class="muted">${deliveriesOf(m)}</span>
            ${trouble(m) && html`<div class="small trouble" title=${trouble(m)}>${trouble(m)}</div>`}
          </td>
          <td role="cell" class="number c-when muted"><${Time} at=${m.occurred} /></td>
        </tr>`)}
    </tbody>
  </table>`;
