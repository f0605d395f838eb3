import { get } from "./api.js";
import { useQuery } from "./query.js";
import { watchBacklog } from "./realtime/index.js";
import * as shapes from "./shapes.js";
import { throughput } from "./throughput.js";

// Rates over the last minutes fall although nothing happens, so the backlog is also read from time to time.
const EVERY = 10_000;

async function read(signal) {
  const backlog = shapes.backlog(await get("/v1/backlog", { signal }));
  throughput.add({ at: backlog.read, attempts: backlog.total.attempts, dispatched: backlog.total.dispatched });
  return backlog;
}

// useBacklog is the live backlog.
export const useBacklog = () => useQuery("backlog", read, { watch: watchBacklog, every: EVERY });

// ageNow is the age of the oldest pending delivery by now: it grows without anything happening.
export const ageNow = (indicators, backlog, now) =>
  indicators.oldest == null || indicators.pending === 0 ? null : indicators.oldest + Math.max(0, now - backlog.read);
