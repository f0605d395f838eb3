// The event stream format, by the WHATWG rules: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

// What one event may hold in characters, so that a broken server cannot fill the tab's memory.
const MOST = 1 << 20;

export class Parser {
  #decoder = new TextDecoder(); // drops a byte order mark, and replaces what is no UTF-8
  #rest = "";
  #afterCR = false;
  #skipping = false; // inside an event that is too large
  #size = 0;
  #data = [];
  #type = "";
  #id = "";

  // on: {event({type, data}), id(lastEventId), retry(ms), oversize()}
  constructor(on) {
    this.on = on;
  }

  // push takes the next bytes of the stream. What has not ended with an empty line when the stream ends is never an event.
  push(bytes) {
    let text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    let start = 0;
    if (this.#afterCR && text !== "") {
      if (text[0] === "\n") start = 1;
      this.#afterCR = false;
    }
    for (let at = this.#rest === "" ? start : Math.max(start, this.#rest.length); at < text.length; at++) {
      const c = text[at];
      if (c !== "\n" && c !== "\r") continue;
      this.#line(text.slice(start, at));
      if (c === "\r") {
        if (at + 1 === text.length) this.#afterCR = true;
        else if (text[at + 1] === "\n") at++;
      }
      start = at + 1;
    }
    this.#rest = text.slice(start);
    if (this.#size + this.#rest.length > MOST) {
      if (!this.#skipping) this.#tooLarge();
      this.#rest = ":"; // whatever follows of this line is not read as one of its own
    }
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    if (line[0] === ":" || this.#skipping) return;
    this.#size += line.length;
    if (this.#size > MOST) return this.#tooLarge();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value[0] === " ") value = value.slice(1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^[0-9]+$/.test(value)) this.on.retry?.(Number(value));
  }

  #dispatch() {
    this.on.id?.(this.#id); // an id moves the cursor even without an event
    const data = this.#data;
    const type = this.#type;
    this.#skipping = false;
    this.#clear();
    if (data.length > 0) this.on.event({ type: type || "message", data: data.join("\n") });
  }

  #tooLarge() {
    this.#clear();
    this.#skipping = true;
    this.on.oversize?.();
  }

  #clear() {
    this.#size = 0;
    this.#data = [];
    this.#type = "";
  }
}
