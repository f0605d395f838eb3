import { Parser } from "./parser.js";
import { retryAfter } from "./backoff.js";

// How a connection ended.
export const ENDED = "ended"; // it stood, and is over
export const FAILED = "failed"; // it never stood
export const REFUSED = "refused"; // the server said no: status

// read opens one connection and reads it until it ends. fetch rather than EventSource, which hides the status and takes every
// error as final. on: {open(), heard(), event({type, data}), id(cursor), retry(ms), lost()}
export async function read({ url, topics, cursor, signal, on }) {
  const address = new URL(url, document.baseURI);
  for (const topic of topics) address.searchParams.append("topic", topic);
  const headers = { Accept: "text/event-stream" };
  if (cursor) headers["Last-Event-ID"] = cursor;
  let answer;
  try {
    answer = await fetch(address, { headers, signal, cache: "no-store", credentials: "same-origin", redirect: "error" });
  } catch (cause) {
    return { how: FAILED, cause };
  }
  const stream = (answer.headers.get("Content-Type") ?? "").startsWith("text/event-stream");
  if (answer.status !== 200 || !stream || !answer.body) {
    answer.body?.cancel().catch(() => {});
    const asked = retryAfter(answer.headers.get("Retry-After"));
    return answer.status === 200 ? { how: FAILED, asked } : { how: REFUSED, status: answer.status, asked };
  }
  on.open();
  const parser = new Parser({ ...on, oversize: on.lost });
  const reader = answer.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { how: ENDED };
      on.heard();
      parser.push(value);
    }
  } catch (cause) {
    return { how: ENDED, cause };
  } finally {
    reader.cancel().catch(() => {});
  }
}
