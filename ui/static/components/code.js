import { html, useMemo } from "../lib/preact.js";
import { pretty, valid } from "../lib/json.js";

const COLOURED = 200_000; // characters; beyond, colours would cost more than they tell
const SHOWN = 500_000;

// Json lays text out for reading, and changes none of its values; what is no JSON is shown as it is.
export function Json({ text, raw = false, label }) {
  const body = useMemo(() => {
    if (raw || !valid(text)) return text.slice(0, SHOWN);
    const tokens = pretty(text);
    if (text.length > COLOURED) return tokens.map(([, token]) => token).join("").slice(0, SHOWN);
    return tokens.map(([kind, token]) => (kind === "space" ? token : html`<span class=${kind}>${token}</span>`));
  }, [text, raw]);
  return html`
    <pre class="code" tabindex="0" role="region" aria-label=${label}>${body}</pre>
    ${text.length > SHOWN && html`<p class="loading">Only the beginning is shown. Copying takes all of it.</p>`}`;
}

// hexdump shows bytes that are no text.
export function hexdump(bytes, most = 4096) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    const hex = part.map((b) => b.toString(16).padStart(2, "0")).join(" ");
    const text = part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${text}`);
  }
  if (bytes.length > most) lines.push("…");
  return lines.join("\n");
}

// asText decodes bytes that are UTF-8, and answers null for others.
export function asText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
