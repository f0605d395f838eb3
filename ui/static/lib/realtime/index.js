// What a page imports for live updates. Views subscribe by what they show and never name a topic; each function calls fn with
// {why: "changed" | "gap", …} whenever the query should be read again, and returns a function that ends it.
import { Live } from "./live.js";

const live = new Live();

export const watchBacklog = (fn) => live.listen("backlog", fn);
export const watchAlerts = (fn) => live.listen("alerts", fn);
export const watchMessages = (fn) => live.listen("messages", fn);
export const watchMessage = (id, fn) => live.listen(`messages/${id}`, fn);
export const watchDestinations = (fn) => live.listen("destinations", fn);
export const watchDestination = (name, fn) => live.listen(`destinations/${name}`, fn);
export const watchDocument = (collection, id, fn) => live.listen(`documents/${collection}/${id}`, fn);
export const watchDesk = (fn) => live.listen("lending/desk", fn);
export const watchLoan = (id, fn) => live.listen(`lending/loans/${id}`, fn);
export const watchLendingStatistics = (fn) => live.listen("lending/statistics", fn);

// connectionState calls fn now and at each change with {phase, since, next, missed}:
//   "live" | "connecting" | "stale" since when | "paused" since when | "signed out" | "refused"
export const connectionState = (fn) => live.watchState(fn);

// startLive joins the stream, or tries again after a refusal; refresh() answers whether this browser still has access.
export const startLive = (options) => live.start(options);
export const pauseLive = () => live.pause();
export const resumeLive = () => live.resume();
export const retryLive = () => live.retry();
export const livePaused = () => live.state.phase === "paused";
