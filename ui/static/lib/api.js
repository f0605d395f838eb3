// The client of the HTTP API. Every failure is a Problem with a sentence and, where there is one, what to do next.

const PATIENCE = 20_000;

export class Problem extends Error {
  constructor({ status = 0, code = "", title = "", detail = "", hint = "", errors = [], retryAfter = 0 }) {
    super(detail || title || "The request failed.");
    this.name = "Problem";
    Object.assign(this, { status, code, title, detail: detail || title, hint, errors, retryAfter });
  }

  // at is the message for one field of a form, by the last part of its path.
  at(name) {
    const found = this.errors.find(({ path = "", location = "" }) => (path || location).split(/[./]/).includes(name));
    return found?.message ?? "";
  }
}

let onSignedOut = () => {};
export const whenSignedOut = (fn) => (onSignedOut = fn);

// path puts an address together from parts that may hold anything.
export const path = (...parts) => "/" + parts.map((part) => encodeURIComponent(part)).join("/");

const key = () => globalThis.crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16)).join("-");

// call answers the Response of a request that succeeded. body is text that is JSON already, or a value to be made JSON.
async function call(method, address, { query, body, signal, quiet = false } = {}) {
  const url = new URL(address, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) if (value !== "" && value != null) url.searchParams.set(name, value);
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method === "POST") headers["Idempotency-Key"] = key();
  const late = AbortSignal.timeout(PATIENCE);
  let answer;
  try {
    answer = await fetch(url, {
      method, headers, credentials: "same-origin", cache: "no-store", redirect: "error",
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw unreachable(late.aborted);
  }
  if (answer.ok) return answer;
  const problem = await problemOf(answer);
  if (problem.status === 401 && !quiet) onSignedOut();
  throw problem;
}

const unreachable = (late) =>
  new Problem({
    code: "unreachable",
    title: "Posthorn did not answer",
    detail: late ? `No answer came within ${PATIENCE / 1000} seconds.` : "Posthorn could not be reached from this browser.",
    hint: "Check that `posthorn serve` runs and that the network between is up. This page tries again by itself.",
  });

async function problemOf(answer) {
  let told = {};
  try {
    told = await answer.json();
  } catch {
    // an answer of something in between, such as a proxy
  }
  const wait = Number(answer.headers.get("Retry-After")) || 0;
  return new Problem({
    ...told,
    status: answer.status,
    detail: told.detail || `The server answered ${answer.status} ${answer.statusText}.`,
    hint: told.hint || (wait ? `Try again in ${wait} s.` : ""),
    errors: told.errors ?? [],
    retryAfter: wait,
  });
}

const json = async (answer) => (answer.status === 204 ? null : parsed(await answer.text()));

function parsed(text) {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    throw new Problem({ code: "no-json", detail: "The answer is not JSON.", hint: "Is something between this browser and Posthorn?" });
  }
}

export const get = async (address, options) => json(await call("GET", address, options));
export const post = async (address, body, options) => json(await call("POST", address, { ...options, body: body ?? {} }));
export const patch = async (address, body) => json(await call("PATCH", address, { body }));
export const remove = async (address, options) => json(await call("DELETE", address, options));

// text answers the exact text of an answer, for JSON whose numbers must not pass through JavaScript's.
export const text = async (address, options) => (await call("GET", address, options)).text();

// bytes answers exactly what is stored, with its content type.
export async function bytes(address, options) {
  const answer = await call("GET", address, options);
  return { type: answer.headers.get("Content-Type") ?? "", bytes: new Uint8Array(await answer.arrayBuffer()) };
}
