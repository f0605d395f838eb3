// The theme: the system's, unless somebody chose. The choice is remembered in this browser.
const KEY = "posthorn-theme";

export const THEMES = ["system", "light", "dark"];

export function theme() {
  try {
    const stored = localStorage.getItem(KEY);
    return THEMES.includes(stored) ? stored : "system";
  } catch {
    return "system"; // storage is off
  }
}

export function setTheme(next) {
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // storage is off: the choice lasts as long as the page
  }
  applyTheme(next);
  dispatchEvent(new Event("themechange"));
}

export function applyTheme(next = theme()) {
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
}

// onTheme calls fn whenever colours change, by choice or by the system.
export function onTheme(fn) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  addEventListener("themechange", fn);
  system.addEventListener("change", fn);
  return () => {
    removeEventListener("themechange", fn);
    system.removeEventListener("change", fn);
  };
}
