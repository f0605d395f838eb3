package ui

import "strings"

// inspect lists what a reader without a mouse, without eyes or with weak ones would stumble over in what the page shows now.
const inspect = `(() => {
  const wrong = [];
  const shown = (e) => e.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true });
  const name = (e) => (e.getAttribute("aria-label") ?? "") + (e.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("") +
    e.textContent + (e.getAttribute("title") ?? "");
  const tell = (e) => e.outerHTML.slice(0, 120);
  for (const e of document.querySelectorAll("button, a[href], [role=img], [role=region], meter, dialog, nav, summary"))
    if (shown(e) && name(e).trim() === "") wrong.push("no name: " + tell(e));
  for (const e of document.querySelectorAll("input, select, textarea"))
    if (shown(e) && !e.labels?.length && !e.getAttribute("aria-label")) wrong.push("no label: " + tell(e));
  const headings = [...document.querySelectorAll("h1, h2, h3, h4")].filter(shown).map((e) => Number(e.tagName[1]));
  if (headings.filter((level) => level === 1).length !== 1) wrong.push("headings of level 1: " + headings.filter((level) => level === 1).length);
  headings.forEach((level, i) => i > 0 && level > headings[i - 1] + 1 && wrong.push("a heading skips from level " + headings[i - 1] + " to " + level));
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => wrong.push("an id twice: " + id));
  for (const e of document.querySelectorAll("[aria-describedby], [aria-labelledby], [aria-controls], label[for]"))
    for (const attribute of ["aria-describedby", "aria-labelledby", "aria-controls", "for"])
      for (const id of (e.getAttribute(attribute) ?? "").split(" ").filter(Boolean))
        if (!document.getElementById(id)) wrong.push(attribute + " of nothing: " + tell(e));
  if (document.querySelectorAll("main").length !== 1) wrong.push("main landmarks: " + document.querySelectorAll("main").length);
  if (!document.documentElement.lang) wrong.push("no language");
  if (!document.title.endsWith("Posthorn")) wrong.push("title: " + document.title);

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const found = rgba(getComputedStyle(e).backgroundColor);
      if (found[3] > 200) return found;
    }
    return rgba(getComputedStyle(document.body).backgroundColor);
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = walker.nextNode()); ) {
    const e = text.parentElement;
    if (!text.data.trim() || !shown(e) || e.closest("script, noscript, .hidden, :disabled")) continue;
    const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const key = getComputedStyle(e).color + ratio;
    if (ratio < 4.5 && !seen.has(key)) {
      seen.add(key);
      wrong.push("contrast " + ratio.toFixed(2) + ": " + tell(e));
    }
  }
  return wrong;
})()`

// accessible holds that nothing of that is wrong.
func (tb *tab) accessible(where string) {
	tb.t.Helper()
	if wrong := eval[[]string](tb, inspect); len(wrong) > 0 {
		tb.t.Errorf("%s:\n  %s", where, strings.Join(wrong, "\n  "))
	}
}

// over is by how many pixels the page is wider than its window.
func (tb *tab) over() int {
	tb.t.Helper()
	return eval[int](tb, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
}
