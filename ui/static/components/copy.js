import { html, useRef, useState } from "../lib/preact.js";
import { icons } from "./icons.js";
import { announce } from "./notice.js";

// The clipboard's interface is missing where a page came over plain HTTP from another machine.
async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.style.position = "fixed";
  area.style.opacity = "0";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("The browser did not allow copying.");
}

// Copy copies a text, or what a function answers, exactly.
export function Copy({ text, what, label }) {
  const [state, setState] = useState("");
  const timer = useRef(0);
  const copy = async () => {
    try {
      await toClipboard(typeof text === "function" ? await text() : text);
      setState("Copied");
      announce(`Copied ${what}`);
    } catch {
      setState("Not copied");
      announce(`Could not copy ${what}. Select it and copy it by hand.`);
    }
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState(""), 2000);
  };
  const icon = state === "Copied" ? icons.check() : icons.copy();
  return label
    ? html`<button type="button" class="plain" onClick=${copy}>${icon}<span>${state || label}</span></button>`
    : html`<button type="button" class="plain icon" title=${state || `Copy ${what}`} aria-label=${`Copy ${what}`} onClick=${copy}>${icon}</button>`;
}

// ShellCode is a command to try.
export const ShellCode = ({ children }) => html`
  <div class="shellcode"><pre tabindex="0" aria-label="Command">${children}</pre><${Copy} text=${String(children)} what="the command" /></div>`;

export const Empty = ({ title, children, command }) => html`
  <div class="empty"><h2>${title}</h2><p>${children}</p>${command && html`<${ShellCode}>${command}<//>`}</div>`;
