import { useEffect, useState } from "./lib/preact.js";

// Addresses are the History API's, without a hash: what a view shows can be linked, reloaded and gone back to.

const CHANGED = "posthorn:navigate";

export const here = () => ({ path: location.pathname, query: new URLSearchParams(location.search) });

// go shows another address. replace leaves no entry to go back to; keep leaves focus and scroll where they are.
export function go(address, { replace = false, keep = false, state = {} } = {}) {
  const url = new URL(address, location.href);
  if (url.href === location.href) return;
  history[replace ? "replaceState" : "pushState"](state, "", url);
  dispatchEvent(new CustomEvent(CHANGED, { detail: { keep } }));
}

// withQuery is this address with some parameters set, or taken away where they are empty.
export function withQuery(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

export function useAddress() {
  const [address, setAddress] = useState({ ...here(), keep: true });
  useEffect(() => {
    const changed = (event) => setAddress({ ...here(), keep: event.detail?.keep ?? false });
    addEventListener("popstate", changed);
    addEventListener(CHANGED, changed);
    return () => {
      removeEventListener("popstate", changed);
      removeEventListener(CHANGED, changed);
    };
  }, []);
  return address;
}

// followLinks makes plain clicks on our own links stay in the page. Everything else a link can do is left to the browser.
export function followLinks(root) {
  root.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href);
    const ours = url.origin === location.origin && !/^\/(v1|static)\//.test(url.pathname) && url.pathname !== "/openapi.json";
    if (!ours || url.hash) return;
    event.preventDefault();
    go(url);
  });
}

// match finds the first route whose pattern fits a path: [["/messages/:id", view], …] answers [view, {id}].
export function match(routes, path) {
  const parts = path.split("/").filter(Boolean);
  for (const [pattern, view] of routes) {
    const wanted = pattern.split("/").filter(Boolean);
    if (wanted.length !== parts.length) continue;
    const values = {};
    const fits = wanted.every((want, i) => {
      if (want[0] !== ":") return want === parts[i];
      try {
        values[want.slice(1)] = decodeURIComponent(parts[i]);
        return true;
      } catch {
        return false; // a % that encodes nothing
      }
    });
    if (fits) return [view, values];
  }
  return [null, {}];
}
