import { html, useEffect, useState } from "../lib/preact.js";
import { connectionState, pauseLive, resumeLive, retryLive } from "../lib/realtime/index.js";
import { clock, exact } from "../lib/format.js";
import { icons } from "./icons.js";
import { announce } from "./notice.js";

export function useConnection() {
  const [state, setState] = useState({ phase: "connecting", since: 0 });
  useEffect(() => connectionState(setState), []);
  return state;
}

const words = ({ phase, since }) =>
  ({
    live: "Live",
    connecting: "Connecting",
    stale: `Stale since ${clock(since)}`,
    paused: `Paused since ${clock(since)}`,
    "signed out": "Signed out",
    refused: "No live updates",
  })[phase];

const titles = {
  live: "Changes appear as they are committed.",
  connecting: "The live connection is being made.",
  stale: "The live connection is down; it is tried again by itself. What is shown may be out of date.",
  paused: "You paused live updates. What is shown may be out of date.",
  refused: "The server refuses live updates to you. Views are read again from time to time.",
};

// LiveIndicator says in words whether the screen is right, and since when it may not be.
export function LiveIndicator() {
  const state = useConnection();
  const { phase, since } = state;
  useEffect(() => {
    if (phase !== "connecting") announce(words(state));
  }, [phase]);
  const icon = phase === "live" || phase === "connecting" ? icons.live : phase === "paused" ? icons.pause : icons.stale;
  return html`
    <span class="live" data-phase=${phase} title=${`${titles[phase] ?? ""}${since && phase !== "live" ? ` ${exact(since, false)}` : ""}`}>
      ${icon()}<span>${words(state)}</span>
    </span>
    ${phase === "stale" && html`<button type="button" class="plain icon" aria-label="Try the connection now" title="Try the connection now" onClick=${retryLive}>${icons.processing()}</button>`}
    ${(phase === "live" || phase === "paused") && html`<${PauseButton} phase=${phase} />`}`;
}

const PauseButton = ({ phase }) =>
  phase === "paused"
    ? html`<button type="button" class="plain icon" aria-label="Resume live updates" title="Resume live updates" onClick=${resumeLive}>${icons.play()}</button>`
    : html`<button type="button" class="plain icon" aria-label="Pause live updates" title="Pause live updates" onClick=${pauseLive}>${icons.pause()}</button>`;
