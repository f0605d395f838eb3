import { html } from "../lib/preact.js";
import { icons } from "./icons.js";

const WORDS = { pending: "Pending", processing: "Processing", dispatched: "Dispatched", "dead-letter": "Dead letter", held: "Held" };

export const STATES = ["pending", "processing", "dispatched", "dead-letter"];
export const stateWord = (state) => WORDS[state] ?? state;

// State shows a state by icon and word; colour only repeats what they say.
export const State = ({ state, word }) => html`
  <span class="state" data-state=${state}>${(icons[state] ?? icons.pending)()}<span>${word ?? stateWord(state)}</span></span>`;

// What the outcome classes of attempts mean to a reader.
const CLASSES = {
  delivered: "accepted by the target",
  throttled: "the target asked to wait",
  unreachable: "the target could not be reached",
  failed: "the target failed or did not answer in time",
  rejected: "the target will not accept this message",
  gone: "the target is no longer there",
  snoozed: "the handler asked for a later time",
  interrupted: "the process stopped during the attempt",
  cancelled: "ended by an operator",
  skipped: "passed over by an operator",
  expired: "the retry horizon passed",
  corrupt: "the payload no longer matches its hash",
};
export const FAILURES = Object.keys(CLASSES).filter((name) => name !== "delivered");
export const classMeaning = (name) => CLASSES[name] ?? "";
