import { useCallback, useEffect, useRef, useState } from "./preact.js";
import { liveNow, livePaused, watchGaps } from "./realtime/index.js";

const PACE = 700; // ms between two refreshes of one view, however fast notifications come
const AGAIN = 5_000; // before a failed read is tried again

// useQuery reads what a view shows and keeps it right: read(signal) asks the API; watch(fn), when given, says when to ask
// again; every, in ms, asks from time to time besides, a little unevenly, so that screens do not ask in step; told(fn), when given, says that something may have changed,
// and while the stream is live and has not said so, the reading is left out. What was shown stays while it is read again, and when reading fails.
// key tells one question from another.
export function useQuery(key, read, { watch, every = 0, told } = {}) {
  const [state, setState] = useState({ key, data: undefined, problem: null, loading: true });
  const latest = useRef({});
  latest.current = { read, watch, told };
  const again = useRef(() => {});

  useEffect(() => {
    const abort = new AbortController();
    let running = false;
    let wanted = false;
    let timer = 0;
    let last = 0;
    let changed = true;
    setState((s) => (s.key === key ? s : { key, data: undefined, problem: null, loading: true }));

    const run = async () => {
      clearTimeout(timer);
      if (running) return void (wanted = true);
      running = true;
      wanted = false;
      last = Date.now();
      changed = false;
      let wait = every * (0.9 + 0.2 * Math.random());
      try {
        const data = await latest.current.read(abort.signal);
        if (!abort.signal.aborted) setState({ key, data, problem: null, loading: false });
      } catch (problem) {
        if (abort.signal.aborted) return;
        if (problem.status !== 401) setState((s) => ({ ...s, problem, loading: false }));
        wait = passing(problem) ? Math.max(AGAIN, problem.retryAfter * 1000 || 0) : wait;
      }
      running = false;
      if (abort.signal.aborted) return;
      if (wanted) soon();
      else if (wait) later(wait);
    };
    const needless = () => document.hidden || livePaused() || (latest.current.told && liveNow() && !changed);
    const later = (wait) => (timer = setTimeout(() => (needless() ? later(wait) : run()), wait));
    // soon is the only read in flight, and not the next before its pace.
    const soon = () => {
      if (running) return void (wanted = true);
      clearTimeout(timer);
      timer = setTimeout(run, Math.max(0, last + PACE - Date.now()));
    };
    again.current = run;
    run();
    const endTold = latest.current.told?.(() => (changed = true));
    const end = latest.current.watch ? latest.current.watch(soon) : every ? watchGaps(soon) : undefined;
    // A tab that comes to the front does not show for another interval what it showed when it was left.
    const front = () => every && !document.hidden && !livePaused() && Date.now() - last >= every && soon();
    document.addEventListener("visibilitychange", front);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", front);
      end?.();
      endTold?.();
    };
  }, [key, every]);

  const refresh = useCallback(() => again.current(), []);
  return { ...(state.key === key ? state : { data: undefined, problem: null, loading: true }), refresh };
}

// passing: a fault that time may heal.
const passing = ({ status }) => status === undefined || status === 0 || status === 429 || status >= 500;

// useCommand runs something once at a time: {run, busy, problem, clear}.
export function useCommand(action) {
  const [state, setState] = useState({ busy: false, problem: null });
  const run = async (...args) => {
    if (state.busy) return undefined;
    setState({ busy: true, problem: null });
    try {
      const result = await action(...args);
      setState({ busy: false, problem: null });
      return result ?? true;
    } catch (problem) {
      setState({ busy: false, problem });
      return undefined;
    }
  };
  return { ...state, run, clear: () => setState({ busy: false, problem: null }) };
}

// One clock for each interval, however many parts of a view are told the time by it.
const clocks = new Map();

function onTick(interval, fn) {
  let clock = clocks.get(interval);
  if (!clock) {
    clock = { fns: new Set() };
    clock.timer = setInterval(() => document.hidden || clock.fns.forEach((each) => each(Date.now())), interval);
    clocks.set(interval, clock);
  }
  clock.fns.add(fn);
  return () => {
    clock.fns.delete(fn);
    if (clock.fns.size > 0) return;
    clearInterval(clock.timer);
    clocks.delete(interval);
  };
}

// useNow re-renders at the interval, for times told from now.
export function useNow(interval = 1000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => onTick(interval, setNow), [interval]);
  return now;
}
