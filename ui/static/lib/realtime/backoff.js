// Waiting between two tries: drawn between nothing and a bound that doubles ("full jitter"), so that clients that were cut off
// together do not come back together. What the server asks for is waited at least.

const FIRST = 500;
const MOST = 30_000;
const SERVER_MOST = 10 * 60_000; // a server's mistake must not silence a screen for the day

export class Backoff {
  #failures = 0;
  #floor = 0; // the stream's own retry:

  constructor(random = Math.random) {
    this.random = random;
  }

  reset() {
    this.#failures = 0;
  }

  // retry is the stream's reconnection time; it holds until the stream says another.
  retry(ms) {
    this.#floor = Math.min(ms, SERVER_MOST);
  }

  // soon is the wait before the first look after a good connection broke off: its end may concern this client alone, as a log-out
  // elsewhere does, and a person should not look at a dead screen for the stream's whole retry.
  soon() {
    return (this.random() * FIRST) / 2;
  }

  // next is the time to wait in milliseconds, asked being a Retry-After for this once.
  next(asked = 0) {
    const bound = Math.min(MOST, FIRST * 2 ** Math.min(this.#failures++, 16));
    return Math.max(this.random() * bound, this.#floor, Math.min(asked, SERVER_MOST));
  }
}

// retryAfter reads the header in both its forms, as milliseconds from now.
export function retryAfter(value, now = Date.now()) {
  if (!value) return 0;
  if (/^\s*[0-9]+\s*$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
