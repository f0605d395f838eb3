import { html, useEffect, useState } from "../lib/preact.js";
import { get, path, post } from "../lib/api.js";
import { exact, plural } from "../lib/format.js";
import { useCommand, useQuery } from "../lib/query.js";
import * as shapes from "../lib/shapes.js";
import { Dialog, Field } from "./dialog.js";
import { moment } from "./filters.js";
import { ProblemBox } from "./notice.js";
import { Time } from "./time.js";

const addressOf = (name) => `/v1${path("destinations", name, "backfill")}`;

// BackfillDialog asks for the span of the past. The API counts none beforehand, and the dialog says so.
export function BackfillDialog({ destination: d, onClose }) {
  const [span, setSpan] = useState({ from: "", to: "" });
  const begin = useCommand(async () => {
    const body = {};
    for (const name of ["from", "to"]) if (span[name]) body[name] = moment(span[name]);
    onClose(await post(addressOf(d.name), body));
  });
  const wrong = (name) => begin.problem?.at?.(name) ?? "";
  const field = (name, label, hint) => html`
    <${Field} label=${label} hint=${hint} wrong=${wrong(name)} render=${(props) => html`
      <input ...${props} type="datetime-local" step="1" value=${span[name]} onChange=${(event) => setSpan({ ...span, [name]: event.target.value })} />`} />`;
  return html`
    <${Dialog} title=${`Backfill ${d.name}?`} onClose=${() => onClose(null)} lock=${begin.busy} onSubmit=${begin.run}>
      <div class="consequences">
        <p>It is given the messages of the past that are still kept, that its types (${d.types.map((type, i) => html`${i > 0 ? ", " : ""}<code>${type}</code>`)}) match, and that it has no delivery of.</p>
        <p>Until the last of them is in it is <strong>held</strong>, new messages too, so that each ordering key comes in order.</p>
        <p class="muted">How many that will be is not counted beforehand; while it goes on, its progress is shown here.</p>
      </div>
      <div class="row">
        ${field("from", "Occurred from", "Empty: from the oldest that is kept")}
        ${field("to", "Occurred before", "Empty: up to now")}
      </div>
      ${begin.problem && !wrong("from") && !wrong("to") && html`<${ProblemBox} problem=${begin.problem} />`}
      <div class="buttons">
        <button type="button" onClick=${() => onClose(null)} disabled=${begin.busy}>Cancel</button>
        <button class="primary" disabled=${begin.busy}>${begin.busy ? "Beginning …" : "Begin the backfill"}</button>
      </div>
    <//>`;
}

// BackfillProgress follows one until it is finished, and then says so once: ended().
export function BackfillProgress({ name, ended }) {
  const [every, setEvery] = useState(1500);
  const { data: b, problem, refresh } = useQuery(`backfill ${name}`, async (signal) => shapes.backfill(await get(addressOf(name), { signal })), { every });
  const finished = b?.state === "finished";
  useEffect(() => {
    if (!finished) return;
    setEvery(0);
    ended();
  }, [finished]);
  return html`
    <section class="card facts-card" aria-labelledby="backfill">
      <h2 id="backfill">Backfill</h2>
      <${ProblemBox} problem=${problem} retry=${refresh} />
      ${b && html`
        <div class="progress">
          <progress max="1" value=${finished ? 1 : b.progress} aria-label="How much of the past was looked at"></progress>
          <p>${finished ? html`Finished <${Time} at=${b.finished} />.` : html`Under way, begun <${Time} at=${b.started} /> by ${b.started_by}. Its deliveries are held until the end.`}
            ${" "}<strong>${plural(b.added, "delivery", "deliveries")}</strong> added of messages ${spanWords(b)}.</p>
        </div>`}
    </section>`;
}

function spanWords({ from, to }) {
  if (from == null && to == null) return "of all the time that is kept";
  return [from != null && `from ${exact(from, false)}`, to != null && `before ${exact(to, false)}`].filter(Boolean).join(", ");
}
