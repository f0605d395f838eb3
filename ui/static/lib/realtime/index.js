// What a page imports for live updates. Views subscribe by what they show and never name a topic; each function calls fn with
// {why: "changed" | "gap", …} whenever the query should be read again, and returns a function that ends it. There is one for each screen whose
// notification record says that it is live; the others poll.
import { Live } from "./live.js";

const live = new Live();

export const watchBacklog = (fn) => live.listen("backlog", fn);
export const watchMessage = (id, fn) => live.listen(`messages/${id}`, fn);
export const watchDesk = (fn) => live.listen("lending/desk", fn);

// watchGaps is for views that poll: fn is called when what they show may be older than their interval, as after a sleep or a pause.
export const watchGaps = (fn) => live.listenToGaps(fn);

// heardBy names what one of the streams that the API lists listens to.
export const heardBy = (stream) => stream.topics ?? [];

// connectionState calls fn now and at each change with {phase, since, next, missed}:
//   "live" | "connecting" | "stale" since when | "paused" since when | "signed out" | "refused"
export const connectionState = (fn) => live.watchState(fn);

// startLive joins the stream, or tries again after a refusal; refresh() answers whether this browser still has access.
export const startLive = (options) => live.start(options);
export const pauseLive = () => live.pause();
export const resumeLive = () => live.resume();
export const retryLive = () => live.retry();
export const liveNow = () => live.state.phase === "live";
export const livePaused = () => live.state.phase === "paused";
