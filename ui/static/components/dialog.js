import { html, useEffect, useId, useRef } from "../lib/preact.js";
import { icons } from "./icons.js";

// Dialog is the browser's own: it keeps the focus, gives it back, and closes on Esc. lock keeps it open until it is answered.
export function Dialog({ title, children, onClose, onSubmit, lock = false }) {
  const box = useRef(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    if (!lock) onClose();
  };
  const submit = (event) => {
    event.preventDefault();
    onSubmit?.();
  };
  return html`
    <dialog ref=${box} aria-labelledby=${id} onCancel=${cancel} onClose=${() => !lock && onClose()}>
      <form method="dialog" onSubmit=${submit} novalidate><h2 id=${id}>${title}</h2>${children}</form>
    </dialog>`;
}

// Field is one labelled control with its hint and what is wrong with it. render receives {id, "aria-…"} to spread on the control.
export function Field({ label, hint, wrong, render }) {
  const id = useId();
  const described = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ") || undefined;
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${render({ id, "aria-describedby": described, "aria-invalid": wrong ? "true" : undefined })}
      ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
      ${wrong && html`<p class="wrong" id="${id}-wrong">${icons.attempt(14)}<span>${wrong}</span></p>`}
    </div>`;
}
