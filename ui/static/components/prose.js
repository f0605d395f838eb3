import { html, useMemo } from "../lib/preact.js";

// The elements that Markdown makes. Everything else is left out, and its text stays.
const ELEMENTS = new Set(["P", "UL", "OL", "LI", "PRE", "CODE", "STRONG", "EM", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "BLOCKQUOTE", "HR", "BR", "A"]);

// Prose shows the page of a record, which the server made of Markdown, element by element: nothing in it is ever run or parsed by the page.
export function Prose({ page }) {
  const content = useMemo(() => [...new DOMParser().parseFromString(page, "text/html").body.childNodes].map(copy), [page]);
  return html`<div class="body">${content}</div>`;
}

function copy(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  const children = [...node.childNodes].map(copy);
  if (/^H[1-6]$/.test(node.tagName)) return html`<h2>${children}</h2>`;
  if (!ELEMENTS.has(node.tagName)) return children;
  const tag = node.tagName.toLowerCase();
  if (tag === "pre") return html`<pre tabindex="0" role="region" aria-label="Commands">${children}</pre>`;
  if (tag !== "a") return html`<${tag}>${children}<//>`;
  const target = node.getAttribute("href") ?? "";
  if (target.startsWith("/") && !target.startsWith("//")) return html`<a href=${target}>${children}</a>`;
  return target.startsWith("https://") ? html`<a href=${target} rel="noopener noreferrer" target="_blank">${children}</a>` : children;
}
