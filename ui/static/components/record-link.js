import { html } from "../lib/preact.js";
import { path } from "../lib/api.js";

// The kinds of record, in the order in which they are listed.
export const KINDS = [
  ["use-cases", "Use cases"], ["journeys", "Journeys"], ["integration-events", "Integration events"], ["notifications", "Notifications"], ["settings", "Settings"],
  ["runbooks", "Runbooks"], ["reactions", "Reactions"], ["jobs", "Jobs"], ["conventions", "Conventions"],
];

export const recordPath = (kind, id) => path("records", kind, id);

// Runbook leads to what to do.
export const Runbook = ({ id, children }) => html`<a href=${recordPath("runbooks", id)}>${children ?? "What to do"}</a>`;
