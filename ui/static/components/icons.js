import { html } from "../lib/preact.js";

const draw = (body) => (size = 16) => html`
  <svg width=${size} height=${size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.6"
    stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${body}</svg>`;

// Each state has a shape of its own, so that it can be told without its colour.
export const icons = {
  pending: draw(html`<circle cx="8" cy="8" r="6" stroke-dasharray="2.4 2.3" /><path d="M8 5v3.2l2 1.3" />`),
  processing: draw(html`<path d="M2.5 8a5.5 5.5 0 0 1 9.6-3.7L13.5 6M13.5 2.6V6h-3.4M13.5 8a5.5 5.5 0 0 1-9.6 3.7L2.5 10M2.5 13.4V10h3.4" />`),
  dispatched: draw(html`<circle cx="8" cy="8" r="6" /><path d="m5.4 8.2 1.8 1.8 3.4-3.8" />`),
  "dead-letter": draw(html`<path d="M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5z" /><path d="m6 6 4 4m0-4-4 4" />`),
  held: draw(html`<circle cx="8" cy="8" r="6" /><path d="M6.6 5.8v4.4M9.4 5.8v4.4" />`),
  attempt: draw(html`<path d="M8 2.2 14 13H2z" /><path d="M8 6.4v3M8 11.2v.1" />`),
  live: draw(html`<circle cx="8" cy="8" r="1.6" fill="currentColor" /><path d="M4.9 11.1a4.4 4.4 0 0 1 0-6.2M11.1 4.9a4.4 4.4 0 0 1 0 6.2M2.8 13.2a7.3 7.3 0 0 1 0-10.4M13.2 2.8a7.3 7.3 0 0 1 0 10.4" />`),
  stale: draw(html`<path d="m2 2 12 12M4.9 11.1a4.4 4.4 0 0 1-.8-5M2.8 13.2A7.3 7.3 0 0 1 2.2 4M11.4 10.7a4.4 4.4 0 0 0-.3-5.8M13.7 11.9a7.3 7.3 0 0 0-.5-9.1" />`),
  pause: draw(html`<path d="M5.5 3.5v9M10.5 3.5v9" />`),
  play: draw(html`<path d="M4.5 3v10l8-5z" />`),
  overview: draw(html`<path d="M2 13h12M3.5 10.5V8M8 10.5V3M12.5 10.5V6" />`),
  messages: draw(html`<rect x="2" y="3.5" width="12" height="9" rx="1.2" /><path d="m2.4 4.4 5.6 4.4 5.6-4.4" />`),
  destinations: draw(html`<path d="M8 14s5-4.2 5-7.8A5 5 0 0 0 3 6.2C3 9.8 8 14 8 14z" /><circle cx="8" cy="6.3" r="1.7" />`),
  documents: draw(html`<path d="M4 2h5l3 3v9H4zM9 2v3h3M6 8.5h4M6 11h4" />`),
  desk: draw(html`<path d="M2 6h12M3.5 6v7.5M12.5 6v7.5M5 6V2.5h2.5V6M7.5 6V3.5l2.6-.6L11 6" />`),
  records: draw(html`<path d="M3 2.5h7.5A2.5 2.5 0 0 1 13 5v8.5H5.5A2.5 2.5 0 0 1 3 11zM3 11a2.5 2.5 0 0 1 2.5-2.5H13M6 5.5h4" />`),
  copy: draw(html`<rect x="5.5" y="5.5" width="8" height="8" rx="1.2" /><path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" />`),
  check: draw(html`<path d="m3 8.5 3.2 3.2L13 4.6" />`),
  system: draw(html`<rect x="2" y="3" width="12" height="8" rx="1" /><path d="M6 13.5h4" />`),
  light: draw(html`<circle cx="8" cy="8" r="2.8" /><path d="M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9" />`),
  dark: draw(html`<path d="M13.3 9.6A5.8 5.8 0 0 1 6.4 2.7a5.7 5.7 0 1 0 6.9 6.9z" />`),
  replay: draw(html`<path d="M3 8a5.2 5.2 0 1 1 1.6 3.8M3 12.4V9.2h3.2" />`),
  access: draw(html`<circle cx="8" cy="5.2" r="2.7" /><path d="M2.8 13.6a5.2 5.2 0 0 1 10.4 0" />`),
  audit: draw(html`<path d="M5.5 3.5H13M5.5 8H13M5.5 12.5H13M2.6 3.5h.1M2.6 8h.1M2.6 12.5h.1" />`),
  plus: draw(html`<path d="M8 3v10M3 8h10" />`),
  back: draw(html`<path d="M9.5 3.5 5 8l4.5 4.5" />`),
  forward: draw(html`<path d="M6.5 3.5 11 8l-4.5 4.5" />`),
  leave: draw(html`<path d="M9.5 11.5v2h-7v-11h7v2M6.5 8h7M11 5.5 13.5 8 11 10.5" />`),
};

export const horn = (size = 24) => html`
  <svg width=${size} height=${size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.9"
    stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
    <circle cx="9.5" cy="12.5" r="5" /><path d="M9.5 7.5H15l6-4.2v12.6l-4.6-2.6" /><path d="M9.5 17.5H3.5" />
  </svg>`;
