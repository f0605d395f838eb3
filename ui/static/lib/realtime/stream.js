import { Backoff } from "./backoff.js";
import { ENDED, REFUSED, read } from "./connection.js";

const SETTLE = 120; // ms in which several changes of topics become one reconnection
const STOOD = 5_000; // a connection that lived this long was a good one
const GRACE = 2_000; // how long a planned reconnection may take before the screen counts as stale
const HEARTBEAT = 15_000; // until the server says hello
const PLANNED = ["drain", "life-span"]; // reasons of a bye that say nothing of this client

// Stream keeps one connection alive for a changing set of topics. It never gives up but for a refusal of access: after 401 or
// 403, refresh() is asked once whether access can be had again. A server that takes access away says so by a bye, and then by the status, which
// is asked for soon.
//
// emit(event) receives {type, data, cursor} of each event; joined(topics) those that a connection which goes on from the one before has taken
// up anew: what became of them until now is in nobody's history, since the place in the stream is that of the other topics; changed(state) {phase, since, next} whenever the state does:
//   phase  "connecting" | "live" | "stale" | "signed out" | "refused"
//   since  when the screen was last known to be right, in ms; next: when the next try is due
export class Stream {
  #topics = [];
  #covered = new Set(); // what the latest connection that stood listened to
  #cursor;
  #backoff = new Backoff();
  #connection = null;
  #wake = null;
  #settle = 0;
  #grace = 0;
  #stopped = false;
  #planned = false;
  #began = Date.now();
  #state;

  constructor({ url, refresh, emit, joined, changed, cursor = "", since = 0 }) {
    Object.assign(this, { url, refresh, emit, joined, changed });
    this.#cursor = cursor;
    this.#state = { phase: since ? "stale" : "connecting", since, next: 0 };
    this.#run();
  }

  get state() {
    return this.#state;
  }

  // want sets the topics. They are fixed for a connection's life, so a new one means another connection; one that nobody
  // wants any more waits for the next.
  want(topics) {
    const added = topics.some((t) => !this.#topics.includes(t));
    this.#topics = [...topics];
    if (!added) return;
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => {
      this.#planned = true;
      this.#connection?.abort();
      this.#wake?.();
    }, SETTLE);
  }

  // nudge ends a wait whose time has come, or any wait when now is true: timers of hidden tabs run late.
  nudge(now = false) {
    if (now || (this.#state.next > 0 && Date.now() >= this.#state.next)) this.#wake?.();
  }

  // again drops a connection that may be dead without anybody having noticed, as after the machine slept.
  again() {
    this.#planned = true;
    this.#connection?.abort();
    this.#wake?.();
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#settle);
    clearTimeout(this.#grace);
    this.#connection?.abort();
    this.#wake?.();
  }

  async #run() {
    await this.#rest(SETTLE);
    let refreshed = false;
    while (!this.#stopped) {
      if (this.#topics.length === 0) {
        await this.#rest(Infinity);
        continue;
      }
      this.#planned = false;
      const end = await this.#connect();
      if (this.#stopped) return;
      if (end.stood) refreshed = false;
      if (end.how === REFUSED && (end.status === 401 || end.status === 403)) {
        if (!refreshed && (await this.#renewed())) {
          refreshed = true;
          continue;
        }
        refreshed = false;
        this.#move(end.status === 401 ? "signed out" : "refused");
        await this.#rest(Infinity); // until somebody signs in, or other topics are wanted
        continue;
      }
      if (this.#planned) continue;
      const wait = end.broke ? this.#backoff.soon() : this.#backoff.next(end.asked);
      if (end.how === ENDED && end.bye) this.#hush();
      else this.#move("stale", wait);
      await this.#rest(wait);
    }
  }

  async #renewed() {
    try {
      return Boolean(await this.refresh?.());
    } catch {
      return true; // nobody could be asked: that is a fault of the network, not a refusal
    }
  }

  async #connect() {
    const abort = new AbortController();
    this.#connection = abort;
    let heartbeat = HEARTBEAT;
    let silent = 0;
    let opened = 0;
    let greeted = false;
    let bye = "";
    // Until the server has said hello, other signs of life do not count: the screen would wait for ever.
    const heard = () => {
      if (silent && !greeted) return;
      clearTimeout(silent);
      silent = setTimeout(() => abort.abort(), 2 * heartbeat);
      if (this.#state.phase === "live") this.#state.since = Date.now();
    };
    this.#hush();
    heard();
    const topics = this.#topics;
    const end = await read({
      url: this.url, topics, cursor: this.#cursor, signal: abort.signal,
      on: {
        heard,
        open: () => (opened = Date.now()),
        id: (id) => (this.#cursor = id || this.#cursor),
        retry: (ms) => this.#backoff.retry(ms),
        lost: () => this.#emit({ type: "reset", data: '{"reason":"oversize"}' }),
        event: (event) => {
          if (event.type === "hello") {
            heartbeat = Number(field(event.data, "heartbeat_ms")) || HEARTBEAT;
            greeted = true;
            heard();
            this.#move("live");
          }
          this.#emit(event);
          if (event.type === "bye") {
            bye = field(event.data, "reason") || "bye";
            abort.abort(); // nothing follows it, whatever a proxy does with the connection
          }
          if (event.type === "hello") this.#join(topics);
        },
      },
    });
    clearTimeout(silent);
    this.#connection = null;
    const good = greeted && Date.now() - opened >= STOOD;
    if (good) this.#backoff.reset();
    return { ...end, stood: greeted, bye: greeted && bye !== "", broke: good && !PLANNED.includes(bye) && end.how === ENDED };
  }

  #join(topics) {
    const added = topics.filter((topic) => !this.#covered.has(topic));
    this.#covered = new Set(topics);
    if (added.length > 0) this.joined(added);
  }

  #emit(event) {
    this.emit({ ...event, cursor: this.#cursor });
  }

  // hush gives a planned reconnection its time before anybody is told.
  #hush() {
    clearTimeout(this.#grace);
    if (this.#state.phase === "live") this.#grace = setTimeout(() => this.#move("stale"), GRACE);
  }

  #move(phase, wait = 0) {
    clearTimeout(this.#grace);
    const now = Date.now();
    const since = phase === "live" ? now : this.#state.since || this.#began;
    this.#state = { phase, since, next: wait ? now + wait : 0 };
    this.changed(this.#state);
  }

  #rest(ms) {
    return new Promise((resolve) => {
      const timer = ms === Infinity ? 0 : setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    }).finally(() => (this.#wake = null));
  }
}

export function field(data, name) {
  try {
    return JSON.parse(data)?.[name];
  } catch {
    return undefined;
  }
}
