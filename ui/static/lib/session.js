import { get, post, remove, whenSignedOut } from "./api.js";
import { startLive } from "./realtime/index.js";

// Who is signed in: undefined while nobody knows yet, null for nobody, else {actor, role, tenant, expires_at}.
let who;
const watchers = new Set();
const tabs = globalThis.BroadcastChannel ? new BroadcastChannel("posthorn-session") : null;

export const session = () => who;

// mayOperate hides what the server would refuse; the server decides.
export const mayOperate = () => who?.role !== "viewer";

export function watchSession(fn) {
  watchers.add(fn);
  fn(who);
  return () => watchers.delete(fn);
}

function become(next) {
  who = next;
  for (const fn of watchers) fn(who);
  if (who) startLive({ refresh });
}

// check asks the server; any answer but a clear no leaves what was known.
export async function check() {
  try {
    become(await get("/v1/session", { quiet: true }));
  } catch (problem) {
    if (problem.status === 401) become(null);
    else throw problem;
  }
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

whenSignedOut(() => who && become(null));
tabs?.addEventListener("message", () => check().catch(() => {}));
