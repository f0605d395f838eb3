// Throughput from the backlog's counters: what was counted between two readings, spread over the time between them. The API keeps no
// history of it; this tab does, for as long as it is open, and across a reload.

export const STEP = 5_000; // ms in one point
export const POINTS = 120;
const KEY = "posthorn-throughput";

export class Throughput {
  #slots = new Map(); // by index of the step: {dispatched, failed, seconds}
  #last = null;

  constructor(storage = null) {
    this.storage = storage;
    try {
      const { slots, last } = JSON.parse(storage?.getItem(KEY) ?? "{}");
      this.#slots = new Map(slots ?? []);
      this.#last = last ?? null;
    } catch {
      // nothing was kept
    }
  }

  get since() {
    return this.#slots.size > 0 ? Math.min(...this.#slots.keys()) * STEP : null;
  }

  // add takes one reading {at, attempts, dispatched}. Counters that fell mean a restart; what lies between is unknown.
  add({ at, attempts, dispatched }) {
    const last = this.#last;
    if (last && at <= last.at) return;
    this.#last = { at, attempts, dispatched };
    const restarted = last && (attempts < last.attempts || dispatched < last.dispatched);
    if (last && !restarted && at - last.at < POINTS * STEP) {
      const done = dispatched - last.dispatched;
      // An attempt counts when it starts and a dispatch when it ends, so one reading alone may show more of the latter.
      this.#spread(last.at, at, done, Math.max(0, attempts - last.attempts - done));
    }
    const oldest = Math.floor(at / STEP) - POINTS;
    for (const index of this.#slots.keys()) if (index < oldest) this.#slots.delete(index);
    try {
      this.storage?.setItem(KEY, JSON.stringify({ slots: [...this.#slots], last: this.#last }));
    } catch {
      // storage is full or off: the chart begins anew after a reload
    }
  }

  #spread(from, to, dispatched, failed) {
    for (let index = Math.floor(from / STEP); index * STEP < to; index++) {
      const part = (Math.min(to, (index + 1) * STEP) - Math.max(from, index * STEP)) / (to - from);
      const slot = this.#slots.get(index) ?? { dispatched: 0, failed: 0, seconds: 0 };
      slot.dispatched += dispatched * part;
      slot.failed += failed * part;
      slot.seconds += ((to - from) * part) / 1000;
      this.#slots.set(index, slot);
    }
  }

  // series is [times in s, failed a second, dispatched a second]; null where nothing is known. It begins where something is, two minutes ago at the
  // latest.
  series(now) {
    const end = Math.floor(now / STEP);
    const known = this.#slots.size > 0 ? Math.min(...this.#slots.keys()) : end;
    const begin = Math.max(end - POINTS + 1, Math.min(known, end - 120_000 / STEP + 1));
    const times = [];
    const dispatched = [];
    const failed = [];
    for (let index = begin; index <= end; index++) {
      const slot = this.#slots.get(index);
      const told = slot && slot.seconds >= 0.5;
      times.push((index * STEP) / 1000);
      dispatched.push(told ? slot.dispatched / slot.seconds : null);
      failed.push(told ? slot.failed / slot.seconds : null);
    }
    return [times, failed, dispatched];
  }

  // recent is the rate over the last points, {dispatched, failed}; null where nothing is known.
  recent(now, points = 6) {
    const end = Math.floor(now / STEP);
    const sum = { dispatched: 0, failed: 0, seconds: 0 };
    for (let index = end - points + 1; index <= end; index++) {
      const slot = this.#slots.get(index);
      for (const name of Object.keys(sum)) sum[name] += slot?.[name] ?? 0;
    }
    return sum.seconds >= 1 ? { dispatched: sum.dispatched / sum.seconds, failed: sum.failed / sum.seconds } : null;
  }
}

// The tab's own readings, whichever view takes them.
export const throughput = new Throughput(globalThis.sessionStorage);
