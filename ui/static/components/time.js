import { html } from "../lib/preact.js";
import { useNow } from "../lib/query.js";
import { ago, exact } from "../lib/format.js";

// Time tells a time from now; the exact time with its zone stands in its title, or beside it.
export function Time({ at, both = false }) {
  useNow(1000);
  if (at == null || Number.isNaN(at)) return html`<span class="faint">–</span>`;
  const whole = exact(at);
  return html`<time datetime=${new Date(at).toISOString()} title=${whole}>${both ? whole : ago(at)}</time>${
    both ? html` <span class="faint">(${ago(at)})</span>` : null}`;
}
