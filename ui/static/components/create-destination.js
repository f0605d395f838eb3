import { html, useState } from "../lib/preact.js";
import { post } from "../lib/api.js";
import { useCommand } from "../lib/query.js";
import { Copy } from "./copy.js";
import { Dialog, Field } from "./dialog.js";
import { Notice, ProblemBox } from "./notice.js";

const KINDS = {
  webhook: { label: "Webhook", hint: "Signed HTTP requests" },
  file: { label: "File", hint: "JSON lines, synced to disk" },
  pull: { label: "Pull", hint: "A consumer asks for them by HTTP" },
};
export const TARGETS = {
  webhook: { label: "URL", input: { type: "url", inputmode: "url", placeholder: "https://shop.example/hooks" } },
  file: { label: "File", input: { placeholder: "/var/lib/posthorn/files/events.jsonl" } },
};
const EMPTY = { name: "", kind: "webhook", url: "", path: "", types: "*", concurrency: "", timeout: "" };

// toList reads patterns as they were typed.
export const toList = (types) => types.split(/[\s,]+/).filter(Boolean);

function body({ name, kind, url, path, types, concurrency, timeout }) {
  const wanted = { name: name.trim(), kind, types: toList(types) };
  if (kind === "webhook") wanted.url = url.trim();
  if (kind === "file") wanted.path = path.trim();
  if (concurrency) wanted.concurrency = Number(concurrency);
  if (timeout) wanted.timeout = `${timeout}s`;
  return wanted;
}

// CreateDestination asks for a new one and then shows its signing secret, once. onClose receives the name of what was created.
export function CreateDestination({ onClose }) {
  const [form, setForm] = useState(EMPTY);
  const [made, setMade] = useState(null);
  const create = useCommand(async () => setMade(await post("/v1/destinations", body(form))));
  const wrong = (name) => create.problem?.at?.(name) ?? "";
  const placed = ["name", "kind", "url", "path", "types", "concurrency", "timeout"].some(wrong);
  const field = (name, label, hint, attributes = {}) => html`
    <${Field} label=${label} hint=${hint} wrong=${wrong(name)} render=${(props) => html`
      <input ...${props} ...${attributes} value=${form[name]} autocomplete="off" spellcheck=${false}
        onInput=${(event) => setForm({ ...form, [name]: event.target.value })} />`} />`;

  if (made) return html`<${Made} made=${made} onClose=${() => onClose(made.name)} />`;
  return html`
    <${Dialog} title="New destination" onClose=${() => onClose("")} onSubmit=${create.run} lock=${create.busy}>
      ${create.problem && !placed && html`<${ProblemBox} problem=${create.problem} />`}
      <div class="row">
        ${field("name", "Name", "Also the name of its lane. 1 to 64 of A–Z a–z 0–9 _ -", { maxlength: 64 })}
        <${Field} label="Kind" wrong=${wrong("kind")} hint=${KINDS[form.kind].hint} render=${(props) => html`
          <select ...${props} onChange=${(event) => setForm({ ...form, kind: event.target.value })}>
            ${Object.entries(KINDS).map(([kind, { label }]) => html`<option key=${kind} value=${kind} selected=${form.kind === kind}>${label}</option>`)}
          </select>`} />
      </div>
      ${form.kind === "webhook" && field("url", TARGETS.webhook.label, "Private addresses must be allowed in posthorn.yaml.", TARGETS.webhook.input)}
      ${form.kind === "file" && field("path", TARGETS.file.label, "An absolute path, in a folder that posthorn.yaml allows.", TARGETS.file.input)}
      ${form.kind === "pull" && html`<p class="muted">Its consumer asks <code>GET /v1/pull/${form.name.trim() || "…"}</code> with an operator's API token, and settles each delivery within the time-out.</p>`}
      ${field("types", "Event types", "Patterns, separated by commas: order-*, member-suspended")}
      <div class="row">
        ${field("concurrency", "Concurrency", "Attempts side by side. Empty: the setting", { inputmode: "numeric", pattern: "[0-9]*" })}
        ${field("timeout", "Time-out in seconds", "For one attempt. Empty: the setting", { inputmode: "numeric", pattern: "[0-9]*" })}
      </div>
      ${create.problem && placed && create.problem.hint && html`<p class="muted">${create.problem.hint}</p>`}
      <div class="buttons">
        <button type="button" onClick=${() => onClose("")} disabled=${create.busy}>Cancel</button>
        <button class="primary" disabled=${create.busy}>${create.busy ? "Creating …" : "Create"}</button>
      </div>
    <//>`;
}

// Made shows the secret. Esc does not close it: it could not be had again.
export const Made = ({ made, title = `${made.name} is created`, onClose }) => html`
  <${Dialog} title=${title} onClose=${onClose} lock onSubmit=${onClose}>
    ${made.secret
      ? html`
        <p>Give this signing secret to the receiver. It checks each <code>webhook-signature</code> by it.</p>
        <div class="secret"><code tabindex="0" aria-label="Signing secret">${made.secret}</code><${Copy} text=${made.secret} what="the signing secret" label="Copy" /></div>
        <${Notice}>It is shown this once and cannot be read again.<//>`
      : html`<p>Messages that fit its types are delivered from now on.</p>`}
    <div class="buttons"><button class="primary">${made.secret ? "I have kept the secret" : "Done"}</button></div>
  <//>`;
