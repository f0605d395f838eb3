import { html, useState } from "../lib/preact.js";
import { patch, path, post } from "../lib/api.js";
import { span } from "../lib/format.js";
import { useCommand } from "../lib/query.js";
import { mayAdminister } from "../lib/session.js";
import { Made, TARGETS, toList } from "./create-destination.js";
import { Dialog, Field } from "./dialog.js";
import { Notice, ProblemBox, Told, announce } from "./notice.js";

const at = (d, verb) => `/v1${path("destinations", d.name)}${verb ? `/${verb}` : ""}`;

// Reshape tries a destination out, changes it and gives it a new secret.
export function Reshape({ destination: d, changed }) {
  const [changing, setChanging] = useState(false);
  const [rotating, setRotating] = useState(false);
  const [trial, setTrial] = useState(null);
  const test = useCommand(async () => {
    setTrial(null);
    const made = await post(at(d, "test"));
    setTrial(made);
    announce(made.delivered ? `${d.name} took the test message` : `${d.name} did not take the test message`);
  });
  const closed = async (done) => {
    setChanging(false);
    setRotating(false);
    if (done) await changed();
  };
  return html`
    <div class="reshape"><div class="reshape-actions">
      ${d.kind !== "pull" && html`<button type="button" disabled=${test.busy} onClick=${test.run}>${test.busy ? "Testing …" : "Send a test"}</button>`}
      ${mayAdminister() && html`<button type="button" onClick=${() => setChanging(true)}>Change …</button>`}
      ${mayAdminister() && d.kind === "webhook" && html`<button type="button" onClick=${() => setRotating(true)}>New secret …</button>`}
    </div>
    <${ProblemBox} problem=${test.problem} />
    ${trial && (trial.delivered
      ? html`<${Told}>It took the test message in ${span(trial.duration_seconds * 1000)}.<//>`
      : html`<${ProblemBox} problem=${{ detail: `It did not take the test message (${trial.failure_class}): ${trial.error}`, hint: trial.excerpt ? `It answered: ${trial.excerpt}` : "Nothing was stored, and nothing is tried again." }} />`)}
    </div>
    ${changing && html`<${ChangeDestination} destination=${d} onClose=${closed} />`}
    ${rotating && html`<${RotateSecret} destination=${d} onClose=${closed} />`}`;
}

// ChangeDestination offers what a destination is, and sends what was changed of it.
function ChangeDestination({ destination: d, onClose }) {
  const target = d.kind === "file" ? "path" : "url";
  const was = { target: d[target] ?? "", types: d.types.join(", "), concurrency: String(d.concurrency), rate: String(d.rate ?? 0), timeout: d.timeout, order: d.order };
  const [form, setForm] = useState(was);
  const wanted = () => {
    const body = {};
    if (form.target !== was.target) body[target] = form.target.trim();
    if (form.types !== was.types) body.types = toList(form.types);
    if (form.concurrency !== was.concurrency) body.concurrency = Number(form.concurrency);
    if (form.rate !== was.rate) body.rate = Number(form.rate);
    if (form.timeout !== was.timeout) body.timeout = form.timeout.trim();
    if (form.order !== was.order) body.order = form.order;
    return body;
  };
  const change = useCommand(async () => {
    if (Object.keys(wanted()).length > 0) {
      await patch(at(d), wanted());
      announce(`${d.name} is changed`);
    }
    onClose(true);
  });
  const wrong = (name) => change.problem?.at?.(name) ?? "";
  const placed = [target, "types", "concurrency", "rate", "timeout"].some(wrong);
  const field = (name, label, hint, attributes = {}, at = name) => html`
    <${Field} label=${label} hint=${hint} wrong=${wrong(at)} render=${(props) => html`
      <input ...${props} ...${attributes} value=${form[name]} autocomplete="off" spellcheck=${false}
        onInput=${(event) => setForm({ ...form, [name]: event.target.value })} />`} />`;
  return html`
    <${Dialog} title=${`Change ${d.name}`} onClose=${() => onClose(false)} onSubmit=${change.run} lock=${change.busy}>
      ${change.problem && !placed && html`<${ProblemBox} problem=${change.problem} />`}
      ${d.kind !== "pull" && field("target", TARGETS[d.kind].label, "What is pending goes there too.", TARGETS[d.kind].input, target)}
      ${field("types", "Event types", "Of what is staged from now on; a backfill gives it the past.")}
      <div class="row">
        ${field("concurrency", "Concurrency", "0: the setting", { inputmode: "numeric", pattern: "[0-9]*" })}
        ${field("rate", "Attempts a second", "0: the setting", { inputmode: "decimal", pattern: "[0-9.]*" })}
        ${field("timeout", "Time-out", "Such as 15s. Empty: the setting")}
      </div>
      <${Field} label="A dead letter" render=${(props) => html`
        <select ...${props} onChange=${(event) => setForm({ ...form, order: event.target.value })}>
          <option value="block" selected=${form.order === "block"}>holds back its ordering key</option>
          <option value="skip" selected=${form.order === "skip"}>lets its ordering key go on</option>
        </select>`} />
      ${change.problem && placed && change.problem.hint && html`<p class="muted">${change.problem.hint}</p>`}
      <div class="buttons">
        <button type="button" onClick=${() => onClose(false)} disabled=${change.busy}>Leave it</button>
        <button class="primary" disabled=${change.busy}>${change.busy ? "Changing …" : "Change it"}</button>
      </div>
    <//>`;
}

// RotateSecret gives a webhook a new signing secret and shows it, once.
function RotateSecret({ destination: d, onClose }) {
  const [hours, setHours] = useState("24");
  const [made, setMade] = useState(null);
  const rotate = useCommand(async () => setMade(await post(at(d, "rotate-secret"), { overlap: `${Number(hours)}h` })));
  if (made) return html`<${Made} made=${made} title=${`${d.name} has a new secret`} onClose=${() => onClose(true)} />`;
  return html`
    <${Dialog} title=${`A new secret for ${d.name}?`} onClose=${() => onClose(false)} onSubmit=${rotate.run} lock=${rotate.busy}>
      <p>Deliveries are signed by both secrets for a while, so that the receiver can change over when it likes.</p>
      <${Field} label="Hours that the old one still signs" hint="0 ends it at once, as when it has become known to others." wrong=${rotate.problem?.at?.("overlap") ?? ""} render=${(props) => html`
        <input ...${props} value=${hours} inputmode="numeric" pattern="[0-9]+" required onInput=${(event) => setHours(event.target.value)} />`} />
      ${Number(hours) === 0 && html`<${Notice}>What is delivered before the receiver knows the new secret will be refused by it.<//>`}
      <${ProblemBox} problem=${rotate.problem} />
      <div class="buttons">
        <button type="button" onClick=${() => onClose(false)} disabled=${rotate.busy}>Keep the old one</button>
        <button class="primary" disabled=${rotate.busy}>${rotate.busy ? "Making …" : "Make a new secret"}</button>
      </div>
    <//>`;
}
