import { openTransport } from "./transport.js";
import { field } from "./stream.js";

const SLEPT = 20_000; // a tick that comes this late means that the machine slept
const TICK = 5_000;

// Live is what a tab knows of the stream: who listens to what, which versions it has seen, and how the connection stands.
// A listener is called with {why: "changed", change, resource, freshness} for a notification and with {why: "gap"} whenever
// what it shows may be out of date. Notifications are hints: it then asks the query.
export class Live {
  #listeners = new Map(); // by topic
  #versions = new Map(); // the newest version seen, by topic
  #epoch = "";
  #watchers = new Set(); // of the state
  #gapped = new Set(); // who is told of gaps alone
  #state = { phase: "connecting", since: 0, next: 0 };
  #pausedSince = 0;
  #gap = 0;
  #reminder = 0;
  #missed = false; // something happened while hidden or paused
  #started = false;
  #transport = null;

  constructor(options = {}) {
    this.options = options;
  }

  // start joins the tabs that listen. refresh() is asked after a refusal: does this browser still have access?
  start(options = {}) {
    Object.assign(this.options, options);
    if (this.#started) return this.#transport?.again();
    this.#started = true;
    this.#open();
    let last = Date.now();
    setInterval(() => {
      const now = Date.now();
      if (now - last > TICK + SLEPT && !document.hidden) this.#woke();
      last = now;
    }, TICK);
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => event.persisted && (this.#open(), this.#lost()));
    addEventListener("online", () => this.#transport?.nudge(true));
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) return;
      this.#transport?.nudge();
      if (this.#missed) this.#lost();
    });
  }

  listen(topic, fn) {
    const entry = { fn };
    const set = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, set.add(entry));
    this.#want();
    return () => {
      set.delete(entry);
      if (set.size > 0 || this.#listeners.get(topic) !== set) return;
      this.#listeners.delete(topic);
      this.#versions.delete(topic);
      this.#want();
    };
  }

  listenToGaps(fn) {
    this.#gapped.add(fn);
    return () => this.#gapped.delete(fn);
  }

  watchState(fn) {
    this.#watchers.add(fn);
    fn(this.state);
    return () => this.#watchers.delete(fn);
  }

  get state() {
    return this.#pausedSince ? { phase: "paused", since: this.#pausedSince, next: 0, missed: this.#missed } : this.#state;
  }

  pause() {
    this.#pausedSince ||= Date.now();
    this.#tell();
  }

  resume() {
    this.#pausedSince = 0;
    this.#tell();
    this.#lost();
  }

  // retry tries at once what would be tried later.
  retry() {
    this.#transport?.nudge(true);
  }

  #open() {
    this.#transport ??= openTransport({ url: "/v1/events", ...this.options, deliver: (message) => this.#deliver(message) });
    this.#want();
  }

  #close() {
    this.#transport?.close();
    this.#transport = null;
  }

  #want() {
    this.#transport?.want([...this.#listeners.keys()]);
  }

  #deliver(message) {
    if (message.kind === "state") this.#turn(message);
    else if (message.kind === "gap") message.topics.forEach((topic) => this.#call(topic, { why: "gap" }));
    else if (message.type === "notification") this.#notified(message.data);
    else if (message.type === "reset") this.#lost();
    else if (message.type === "hello") this.#hello(message.data);
  }

  #turn({ phase, since, next }) {
    if (phase === this.#state.phase && since === this.#state.since && next === this.#state.next) return;
    this.#state = { phase, since, next };
    clearTimeout(this.#reminder);
    // The tab that holds the connection may be hidden, where timers run late; this one may be looked at.
    if (next) this.#reminder = setTimeout(() => this.#transport?.nudge(), next - Date.now() + 500);
    this.#tell();
  }

  #hello(data) {
    const epoch = field(data, "epoch") ?? "";
    if (epoch !== this.#epoch) this.#versions.clear(); // its versions cannot be compared with those of another
    if (epoch !== this.#epoch || field(data, "resumed") !== true) this.#lost();
    this.#epoch = epoch;
  }

  // A version that is not newer is a repeat, or came after a newer one; zero means that the topic has no versions.
  #notified(data) {
    const topic = field(data, "topic");
    if (typeof topic !== "string") return this.#lost();
    if (!this.#listeners.has(topic)) return;
    const version = field(data, "version") ?? 0;
    if (version > 0) {
      if (version <= (this.#versions.get(topic) ?? 0)) return;
      this.#versions.set(topic, version);
    }
    const { change, resource, freshness } = JSON.parse(data);
    this.#call(topic, { why: "changed", change, resource, freshness });
  }

  #call(topic, hint) {
    if (document.hidden || this.#pausedSince) return this.#miss();
    for (const { fn } of this.#listeners.get(topic) ?? []) fn(hint);
  }

  #miss() {
    if (this.#missed) return;
    this.#missed = true;
    if (this.#pausedSince) this.#tell();
  }

  // lost refreshes everything shown, once for what comes together.
  #lost() {
    if (document.hidden || this.#pausedSince) return this.#miss();
    this.#missed = false;
    clearTimeout(this.#gap);
    this.#gap = setTimeout(() => {
      for (const topic of [...this.#listeners.keys()]) this.#call(topic, { why: "gap" });
      for (const fn of [...this.#gapped]) fn({ why: "gap" });
    });
  }

  #woke() {
    this.#transport?.again();
    this.#lost();
  }

  #tell() {
    for (const fn of this.#watchers) fn(this.state);
  }
}
