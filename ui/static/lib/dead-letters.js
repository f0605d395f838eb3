import { post } from "./api.js";

// The filter of dead letters, named alike in the address and in the API. The same one is shown, counted and replayed.
export const FILTERS = ["handler", "class", "type", "q", "from", "to"];

// MOST_TEXT bounds q in the API.
const MOST_TEXT = 200;

const given = (filter) => Object.fromEntries(FILTERS.filter((name) => filter[name]).map((name) => [name, filter[name]]));

// replays does one part of a bulk replay, or counts in a dry run; next of its answer is the cursor of the part that follows.
export const replays = (filter, { reason, dry = false, cursor = "" }, options) =>
  post("/v1/replays", { filter: given(filter), ...(dry ? { dry_run: true } : { reason }), ...(cursor && { cursor }) }, options);

// PARTS bounds a count: each takes the server some seconds at most.
const PARTS = 12;

// countLetters counts what a filter meets: {matched, groups: [{handler, class, count}], more}; more: there are others beyond the bound.
export async function countLetters(filter, signal) {
  const groups = new Map();
  let matched = 0;
  let cursor = "";
  for (let part = 0; part < PARTS; part++) {
    const answer = await replays(filter, { dry: true, cursor }, { signal });
    matched += answer.matched;
    for (const sum of answer.handlers ?? []) {
      const key = keyOf(sum.handler, sum.class);
      groups.set(key, { ...sum, count: sum.count + (groups.get(key)?.count ?? 0) });
    }
    cursor = answer.next ?? "";
    if (!cursor) break;
  }
  return { matched, groups: [...groups.values()], more: Boolean(cursor), at: Date.now() };
}

const keyOf = (handler, name) => `${handler}\n${name}`;

const fits = (d, m, { handler, class: name, q }) =>
  d.state === "dead-letter" && (!handler || d.handler === handler) && (!name || d.failure_class === name) &&
  (!q || [m.id, d.last_error ?? ""].some((text) => text.toLowerCase().includes(q.toLowerCase())));

// Errors that differ in numbers only are one.
const alike = (text) => text.replace(/[0-9a-f]{8,}|\d+/gi, "#");

function common(a, b) {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return a.slice(0, i);
}

// groupLetters puts the dead letters of messages together by handler and class, and in these by error. counts, where there are any, are
// the whole; without them a group has as many as were read.
export function groupLetters(messages, filter, counts) {
  const groups = new Map((counts ?? []).map((c) => [keyOf(c.handler, c.class), { handler: c.handler, class: c.class, count: c.count, read: 0, errors: new Map() }]));
  for (const m of messages) {
    for (const d of m.deliveries) {
      if (!fits(d, m, filter)) continue;
      const key = keyOf(d.handler, d.failure_class);
      const group = groups.get(key) ?? { handler: d.handler, class: d.failure_class, count: null, read: 0, errors: new Map() };
      groups.set(key, group);
      group.read++;
      const text = d.last_error ?? "";
      const error = group.errors.get(alike(text)) ?? { text, common: text, read: 0, latest: 0, letters: [] };
      group.errors.set(alike(text), error);
      error.read++;
      error.common = common(error.common, text);
      error.latest = Math.max(error.latest, d.completed ?? 0);
      if (error.letters.length < 3) error.letters.push(m);
    }
  }
  return [...groups.values()]
    .map((g) => ({ ...g, errors: [...g.errors.values()].sort((a, b) => b.read - a.read) }))
    .sort((a, b) => (b.count ?? b.read) - (a.count ?? a.read) || a.handler.localeCompare(b.handler));
}

// textOf is what to search for to find the letters of an error: what all of its texts begin with.
export const textOf = (error) => error.common.slice(0, MOST_TEXT).trim();
