// The collections that were opened in this browser, the latest first. A convenience: nothing depends on it.
const KEY = "posthorn-collections";
const MOST = 12;

export function recentCollections() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((name) => typeof name === "string").slice(0, MOST) : [];
  } catch {
    return [];
  }
}

export function rememberCollection(name) {
  try {
    localStorage.setItem(KEY, JSON.stringify([name, ...recentCollections().filter((kept) => kept !== name)].slice(0, MOST)));
  } catch {
    // storage is off
  }
}
