import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { go, withQuery } from "../router.js";

// Filters live in the address, so that what they show can be linked and reloaded.
export const setFilter = (name, value) => go(withQuery({ [name]: value, after: "" }), { replace: true, keep: true });

// moment makes RFC 3339 of what a datetime-local field holds, which is this browser's time.
export function moment(text) {
  const at = text ? new Date(text) : null;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : "";
}

// A text keeps what is being typed, whatever the list does meanwhile, and goes into the address when the typing rests.
function TextFilter({ name, value, children }) {
  const [draft, setDraft] = useState(value);
  const sent = useRef(value);
  const typing = useRef(0);
  useEffect(() => {
    if (value === sent.current) return;
    clearTimeout(typing.current); // somebody else changed it: the filters were cleared, or one went back
    sent.current = value;
    setDraft(value);
  }, [value]);
  useEffect(() => () => clearTimeout(typing.current), []);
  const type = ({ target }) => {
    setDraft(target.value);
    clearTimeout(typing.current);
    typing.current = setTimeout(() => {
      sent.current = target.value.trim();
      setFilter(name, sent.current);
    }, 300);
  };
  return children({ value: draft, onInput: type, spellcheck: false, autocomplete: "off" });
}

export const SearchFilter = ({ value }) => html`
  <${TextFilter} name="q" value=${value}>${(props) => html`
    <div class="field search">
      <label for="search">Search <kbd aria-hidden="true">/</kbd></label>
      <input id="search" type="search" ...${props} placeholder="Text of an id or an error" aria-keyshortcuts="/" />
    </div>`}<//>`;

export const TextField = ({ name, label, value, placeholder, problem }) => html`
  <${TextFilter} name=${name} value=${value}>${(props) => html`
    <div class="field">
      <label for="filter-${name}">${label}</label>
      <input id="filter-${name}" ...${props} placeholder=${placeholder} aria-invalid=${problem?.at?.(name) ? "true" : undefined} />
    </div>`}<//>`;

export const TimeField = ({ name, label, value }) => html`
  <div class="field">
    <label for="filter-${name}">${label}</label>
    <input id="filter-${name}" type="datetime-local" step="1" value=${value} onChange=${(event) => setFilter(name, event.target.value)} />
  </div>`;

// Choice offers [value, words] beside any.
export const Choice = ({ name, label, value, options }) => html`
  <div class="field">
    <label for="filter-${name}">${label}</label>
    <select id="filter-${name}" onChange=${(event) => setFilter(name, event.target.value)}>
      <option value="" selected=${!value}>Any</option>
      ${options.map(([option, words]) => html`<option key=${option} value=${option} selected=${value === option}>${words}</option>`)}
    </select>
  </div>`;
