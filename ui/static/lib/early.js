// Before anything is drawn, so that a remembered theme does not flash the other one. A classic script: modules wait.
try {
  const chosen = localStorage.getItem("posthorn-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // storage is off: the system's theme
}
