import { get, post, remove, whenSignedOut } from "./api.js";
import { connectionState, startLive } from "./realtime/index.js";

// Who is signed in: undefined while nobody knows yet, null for nobody, else {actor, role, tenant, expires_at}.
let who;
const watchers = new Set();
const tabs = globalThis.BroadcastChannel ? new BroadcastChannel("posthorn-session") : null;

export const session = () => who;

// mayOperate hides what the server would refuse; the server decides.
export const mayOperate = () => who?.role !== "viewer";
export const mayAdminister = () => who?.role === "admin";

export function watchSession(fn) {
  watchers.add(fn);
  fn(who);
  return () => watchers.delete(fn);
}

let turns = 0; // how often somebody signed in or out: an answer about who was there before tells nothing any more

function become(next) {
  turns++;
  const came = next && !who;
  who = next;
  for (const fn of watchers) fn(who);
  if (came) startLive({ refresh });
}

let asking = null;

// check asks the server; any answer but a clear no leaves what was known.
export const check = () => (asking ??= ask().finally(() => (asking = null)));

async function ask() {
  const turn = turns;
  let found = null;
  try {
    found = await get("/v1/session", { quiet: true });
  } catch (problem) {
    if (problem.status !== 401) throw problem;
  }
  if (turn === turns) become(found);
}

async function refresh() {
  await check();
  return Boolean(who);
}

// signIn takes {setup} from a one-time link or {token}, an API token.
export async function signIn(proof) {
  const told = await post("/v1/session", proof, { quiet: true });
  become(told?.actor ? told : await get("/v1/session", { quiet: true }));
  tabs?.postMessage("changed");
}

export async function signOut() {
  await remove("/v1/session", { quiet: true }).catch((problem) => {
    if (problem.status !== 401) throw problem;
  });
  become(null);
  tabs?.postMessage("changed");
}

// endOthers signs the same person out of every other browser.
export const endOthers = () => remove("/v1/session/others");

// A refused request may be an old one, so the server is asked again.
const quietly = () => check().catch(() => {});
whenSignedOut(() => who && quietly());
// Another tab may hold the connection, and learn of it first.
connectionState(({ phase }) => phase === "signed out" && who && quietly());
tabs?.addEventListener("message", quietly);
