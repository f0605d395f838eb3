// Numbers and times for people. Every exact time is shown with its zone.

const number = new Intl.NumberFormat("en-GB");
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const count = (n) => (n == null ? "–" : number.format(n));

export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

// share writes a ratio without calling anything short of all of it 100 %.
export function share(ratio) {
  if (ratio == null) return "–";
  const percent = ratio * 100;
  if (percent === 100 || percent === 0) return `${percent} %`;
  const digits = percent > 99 || percent < 1 ? 2 : 1;
  return `${(Math.floor(percent * 10 ** digits) / 10 ** digits).toFixed(digits)} %`;
}

// rate writes events a second with two significant digits.
export function rate(perSecond) {
  if (perSecond == null) return "–";
  if (perSecond >= 100) return number.format(Math.round(perSecond));
  return perSecond >= 10 ? perSecond.toFixed(0) : perSecond.toFixed(1);
}

// span writes a duration of ms in its two largest units.
export function span(ms) {
  if (ms == null) return "–";
  if (ms < 1) return ms <= 0 ? "0 ms" : "< 1 ms";
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  const [unit, big, small, sub] =
    ms < HOUR ? [MINUTE, "min", "s", SECOND] : ms < DAY ? [HOUR, "h", "min", MINUTE] : [DAY, "d", "h", HOUR];
  const rest = Math.floor((ms % unit) / sub);
  return `${Math.floor(ms / unit)} ${big}${rest ? ` ${rest} ${small}` : ""}`;
}

// ago is a time told from now: "just now", "3 min ago", "in 12 s".
export function ago(time, now = Date.now()) {
  const passed = now - time;
  if (Math.abs(passed) < 2 * SECOND) return passed < -SECOND ? "in a second" : "just now";
  const text = coarse(Math.abs(passed));
  return passed < 0 ? `in ${text}` : `${text} ago`;
}

function coarse(ms) {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

const pad = (n, width = 2) => String(n).padStart(width, "0");

// zone is this browser's offset at a time: "UTC", "UTC+02:00".
export function zone(time) {
  const minutes = -new Date(time).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

export function clock(time, millis = false) {
  const d = new Date(time);
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}${millis ? "." + pad(d.getMilliseconds(), 3) : ""}`;
}

// exact is a whole time: "2026-11-29 17:04:10.123 UTC".
export function exact(time, millis = true) {
  const d = new Date(time);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${clock(time, millis)} ${zone(time)}`;
}

export function size(bytes) {
  if (bytes < 1024) return plural(bytes, "byte");
  return bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}
