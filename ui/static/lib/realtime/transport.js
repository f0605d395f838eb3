import { Stream } from "./stream.js";

// The most topics that one connection may have; those beyond are polled.
const MOST_TOPICS = 30;
const POLL = 10_000;
const CENSUS = 20_000;

// openTransport is how a tab hears: {want(topics), nudge(now), again(), close()}. Where the browser can, one tab holds the only
// connection and passes what it hears to the others, since browsers allow six connections to a host; elsewhere (a page that came
// over plain HTTP from another machine has no locks) each tab holds its own.
//
// deliver receives {kind: "event", type, data, cursor} | {kind: "state", phase, since, next} | {kind: "gap", topics}: these are to be
// read again.
export function openTransport(options) {
  return navigator.locks && globalThis.BroadcastChannel ? new Shared(options) : new Own(options);
}

// Leader turns what tabs want into one stream.
class Leader {
  #wants = new Map(); // by tab
  #polled = [];

  constructor({ url, refresh }, publish, { cursor, since }) {
    this.stream = new Stream({
      url, refresh, cursor, since,
      emit: (event) => publish({ kind: "event", ...event }),
      joined: (topics) => publish({ kind: "gap", topics }),
      changed: (state) => publish({ kind: "state", ...state }),
    });
    this.poll = setInterval(() => {
      if (this.#polled.length > 0) publish({ kind: "gap", topics: this.#polled });
    }, POLL);
  }

  want(tab, topics) {
    this.#wants.delete(tab); // the tab that asked last comes first
    if (topics.length > 0) this.#wants.set(tab, topics);
    const union = [...new Set([...this.#wants.values()].reverse().flat())];
    this.#polled = union.slice(MOST_TOPICS);
    this.stream.want(union.slice(0, MOST_TOPICS));
  }

  // keep forgets the tabs that are gone.
  keep(alive) {
    for (const [tab, topics] of this.#wants) if (!alive(tab) && topics) this.want(tab, []);
  }

  close() {
    clearInterval(this.poll);
    this.stream.stop();
  }
}

class Own {
  constructor({ deliver, ...options }) {
    this.leader = new Leader(options, deliver, {});
  }
  want(topics) {
    this.leader.want("self", topics);
  }
  nudge(now) {
    this.leader.stream.nudge(now);
  }
  again() {
    this.leader.stream.again();
  }
  close() {
    this.leader.close();
  }
}

class Shared {
  #id = crypto.randomUUID();
  #topics = [];
  #leader = null;
  #cursor = "";
  #state = { phase: "connecting", since: 0, next: 0 };
  #closing = new AbortController();
  #leave = () => {};

  constructor({ name = "posthorn-live", deliver, ...options }) {
    this.name = name;
    this.deliver = deliver;
    this.options = options;
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = ({ data }) => this.#receive(data);
    const gone = new Promise((resolve) => (this.#leave = resolve));
    const { signal } = this.#closing;
    const quiet = () => {}; // an aborted request for a lock is a closed transport
    // The lock of a tab's own says that it is alive; the other makes it the leader once the one before has gone.
    navigator.locks.request(`${name}/${this.#id}`, { signal }, () => gone).catch(quiet);
    navigator.locks.request(name, { signal }, () => {
      this.#lead();
      return gone;
    }).catch(quiet);
    this.#send({ kind: "want", topics: [] }); // the leader answers with the state
  }

  want(topics) {
    this.#topics = topics;
    if (this.#leader) this.#leader.want(this.#id, topics);
    else this.#send({ kind: "want", topics });
  }

  nudge(now = false) {
    if (this.#leader) this.#leader.stream.nudge(now);
    else this.#send({ kind: "nudge", now });
  }

  again() {
    if (this.#leader) this.#leader.stream.again();
    else this.#send({ kind: "again" });
  }

  close() {
    if (!this.#leader) this.#send({ kind: "want", topics: [] });
    this.#leader?.close();
    clearInterval(this.census);
    this.channel.close();
    this.#closing.abort();
    this.#leave();
  }

  #lead() {
    const publish = (message) => {
      this.channel.postMessage(message);
      this.#take(message);
    };
    this.#leader = new Leader(this.options, publish, { cursor: this.#cursor, since: this.#state.since });
    this.#leader.want(this.#id, this.#topics);
    this.#send({ kind: "leader" });
    this.census = setInterval(async () => {
      const held = new Set((await navigator.locks.query()).held.map((lock) => lock.name));
      this.#leader.keep((tab) => tab === this.#id || held.has(`${this.name}/${tab}`));
    }, CENSUS);
  }

  #send(message) {
    this.channel.postMessage({ ...message, from: this.#id });
  }

  #receive(message) {
    const { kind, from } = message;
    if (this.#leader) {
      if (kind === "want") {
        this.#leader.want(from, message.topics);
        this.channel.postMessage({ kind: "state", ...this.#leader.stream.state });
      } else if (kind === "nudge") this.#leader.stream.nudge(message.now);
      else if (kind === "again") this.#leader.stream.again();
    } else if (kind === "leader") this.#send({ kind: "want", topics: this.#topics });
    else this.#take(message);
  }

  #take(message) {
    if (message.kind === "event") this.#cursor = message.cursor;
    else if (message.kind === "state") this.#state = message;
    else if (message.kind !== "gap") return;
    this.deliver(message);
  }
}
