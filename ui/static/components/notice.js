import { html, useEffect, useState } from "../lib/preact.js";
import { icons } from "./icons.js";

// What screen readers are told: no more than one sentence in a while, the newest.
const PACE = 3000;
let tell = () => {};
let waiting = null;
let last = 0;

export function announce(sentence) {
  clearTimeout(waiting);
  const wait = Math.max(50, last + PACE - Date.now());
  waiting = setTimeout(() => {
    last = Date.now();
    tell(sentence);
  }, wait);
}

export function Announcer() {
  const [sentence, setSentence] = useState("");
  useEffect(() => {
    tell = setSentence;
    return () => (tell = () => {});
  }, []);
  return html`<div class="hidden" role="status">${sentence}</div>`;
}

// ProblemBox says what went wrong and what to do next.
export const ProblemBox = ({ problem, retry, kept = false }) => problem && html`
  <div class="problem" role="alert">
    ${icons.attempt()}
    <div>
      <strong>${problem.detail ?? problem.message}</strong>
      ${problem.hint && html`<p>${problem.hint}</p>`}
      ${kept && html`<p class="small">What is shown below was read before that.</p>`}
    </div>
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;

export const Notice = ({ children }) => html`<div class="notice">${icons.held()}<div>${children}</div></div>`;

// Told says what was done.
export const Told = ({ children }) => html`<div class="notice done">${icons.check()}<div>${children}</div></div>`;

export const Loading = ({ what }) => html`<p class="loading" role="status">Reading ${what} …</p>`;

// Freshness shows a value that somebody else decides; values that are decisions themselves say nothing.
export const Freshness = ({ value }) => value?.mode === "advisory" && html`
  <${Notice}>Provisional: decided by <strong>${value.authority}</strong>.<//>`;
