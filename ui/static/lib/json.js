// JSON as text. Nothing here makes a number of digits: 12345678901234567890 and 1.10 stay what they are, and so do duplicate keys.

const TOKEN = /\s+|[{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s{}[\],:"]+/gy;

export function valid(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// tokens yields [kind, text] of valid JSON, without the white space between: "punct", "key", "string", "number", "word".
export function* tokens(text) {
  let waiting = null; // a string is a key when a colon follows
  for (const [token] of text.matchAll(TOKEN)) {
    if (/^\s/.test(token)) continue;
    if (waiting !== null) {
      yield [token === ":" ? "key" : "string", waiting];
      waiting = null;
    }
    if (token[0] === '"') waiting = token;
    else if ("{}[],:".includes(token)) yield ["punct", token];
    else yield [/^[-0-9]/.test(token) ? "number" : "word", token];
  }
  if (waiting !== null) yield ["string", waiting];
}

// pretty lays valid JSON out in lines: an array of [kind, text], white space of its own being of kind "space".
export function pretty(text, indent = "  ") {
  const out = [];
  let depth = 0;
  let before = "";
  const line = () => out.push(["space", "\n" + indent.repeat(depth)]);
  for (const [kind, token] of tokens(text)) {
    const closing = kind === "punct" && (token === "}" || token === "]");
    const opened = before === "{" || before === "[";
    if (closing) {
      depth--;
      if (!opened) line();
    } else if (opened || before === ",") line();
    out.push([kind, token]);
    if (token === ":" && kind === "punct") out.push(["space", " "]);
    before = kind === "punct" ? token : "";
    if (before === "{" || before === "[") depth++;
  }
  return out;
}

export const prettyText = (text) => (valid(text) ? pretty(text).map(([, token]) => token).join("") : text);

// member cuts the exact text of one member out of an object: member('{"a":1.10}', "a") is "1.10".
export function member(text, name) {
  const wanted = JSON.stringify(name);
  let depth = 0;
  let before = "";
  let key = "";
  let from = -1;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (/^\s/.test(token)) continue;
    if (depth === 1 && from >= 0 && (token === "," || token === "}")) return text.slice(from, index).trimEnd();
    if (depth === 1 && from < 0 && before === ":" && key === wanted) from = index;
    if (depth === 1 && token === ":") key = before;
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    before = token;
  }
  return undefined;
}
