import { html, useState } from "../lib/preact.js";
import { useCommand } from "../lib/query.js";
import { Dialog, Field } from "./dialog.js";
import { ProblemBox } from "./notice.js";

// The bound of the API and of the audit that keeps it.
export const MOST_REASON = 500;

// ReasonField asks why. The audit keeps the answer beside the name of who gave it.
export const ReasonField = ({ value, onInput, wrong, required = true, example = "" }) => html`
  <${Field} label="Reason" wrong=${wrong} hint=${`${required ? "Required" : "Optional"}. The audit keeps it beside your name.`} render=${(props) => html`
    <input ...${props} value=${value} maxlength=${MOST_REASON} autocomplete="off" placeholder=${example} aria-required=${required ? "true" : undefined}
      onInput=${(event) => onInput(event.target.value)} />`} />`;

// ReasonDialog says what something will do, asks why, and does it: run(reason). onClose receives its result, or null when nothing was done.
export function ReasonDialog({ title, verb, danger = false, required = true, example, run, onClose, children }) {
  const [reason, setReason] = useState("");
  const [missing, setMissing] = useState(false);
  const act = useCommand(async () => {
    const result = await run(reason.trim());
    onClose(result ?? {});
  });
  const submit = () => {
    const none = required && reason.trim() === "";
    setMissing(none);
    if (!none) act.run();
  };
  const wrong = missing ? "Say why." : (act.problem?.at?.("reason") ?? "");
  return html`
    <${Dialog} title=${title} onClose=${() => onClose(null)} lock=${act.busy} onSubmit=${submit}>
      <div class="consequences">${children}</div>
      <${ReasonField} value=${reason} onInput=${setReason} wrong=${wrong} required=${required} example=${example} />
      ${act.problem && (!wrong || missing) && html`<${ProblemBox} problem=${act.problem} />`}
      <div class="buttons">
        <button type="button" onClick=${() => onClose(null)} disabled=${act.busy}>Cancel</button>
        <button class=${danger ? "danger" : "primary"} disabled=${act.busy}>${act.busy ? "Working …" : verb}</button>
      </div>
    <//>`;
}
