import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { get } from "../lib/api.js";
import { useQuery } from "../lib/query.js";
import { resumeLive, watchMessages } from "../lib/realtime/index.js";
import * as shapes from "../lib/shapes.js";
import { Empty } from "../components/copy.js";
import { FIRST_MESSAGE } from "../components/examples.js";
import { icons } from "../components/icons.js";
import { useConnection } from "../components/live.js";
import { MessageTable } from "../components/messages.js";
import { Freshness, Loading, Notice, ProblemBox } from "../components/notice.js";
import { STATES, stateWord } from "../components/state.js";
import { go, withQuery } from "../router.js";

// The filters, named alike in the address and in the API.
const FILTERS = ["state", "type", "handler", "q", "from", "to"];
const LIMIT = 50;

export function Messages({ query }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
  const after = query.get("after") ?? "";
  const read = async (signal) => {
    const { state, type, handler, q, from, to } = filters;
    const answer = await get("/v1/messages", {
      signal,
      query: { limit: LIMIT, state, type, handler, q, from: moment(from), to: moment(to), cursor: after },
    });
    return { ...shapes.messages(answer), freshness: answer.freshness };
  };
  const key = `messages ${JSON.stringify(filters)} ${after}`;
  const { data, problem, loading, refresh } = useQuery(key, read, { watch: watchMessages });
  const filtered = FILTERS.some((name) => filters[name]);
  return html`
    <header class="head"><h1 tabindex="-1">Messages</h1></header>
    <${Filters} filters=${filters} problem=${problem} />
    <${Waiting} />
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    <${Freshness} value=${data?.freshness} />
    ${!data && loading && html`<${Loading} what="messages" />`}
    ${data && html`
      <section class="card" aria-label="Messages">
        ${data.messages.length > 0
          ? html`<${MessageTable} messages=${data.messages} label="Messages, the newest first" />`
          : data.next
            ? html`<${Empty} title="Nothing fits in this stretch">A page looks at a bounded number of messages. Older ones follow below.<//>`
            : filtered || after
            ? html`<${Empty} title="No message fits">No message has all that the filters ask for. <a href="/messages">Clear the filters</a><//>`
            : html`<${Empty} title="No message yet" command=${FIRST_MESSAGE()}>
                A message is staged in the transaction of what it tells about. Try one; it appears here by itself:<//>`}
      </section>
      <${Pager} after=${after} next=${data.next} />`}`;
}

// moment makes RFC 3339 of what a datetime-local field holds, which is this browser's time.
function moment(text) {
  const at = text ? new Date(text) : null;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : "";
}

// A text keeps what is being typed, whatever the list does meanwhile, and goes into the address when the typing rests.
function TextFilter({ name, value, set, children }) {
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
      set(name, sent.current);
    }, 300);
  };
  return children({ value: draft, onInput: type, spellcheck: false, autocomplete: "off" });
}

const setFilter = (name, value) => go(withQuery({ [name]: value, after: "" }), { replace: true, keep: true });

function Filters({ filters, problem }) {
  const open = Boolean(filters.type || filters.handler || filters.from || filters.to);
  const [more, setMore] = useState(open);
  const text = (name, label, placeholder) => html`
    <${TextFilter} name=${name} value=${filters[name]} set=${setFilter}>${(props) => html`
      <div class="field">
        <label for="filter-${name}">${label}</label>
        <input id="filter-${name}" ...${props} placeholder=${placeholder} aria-invalid=${problem?.at?.(name) ? "true" : undefined} />
      </div>`}<//>`;
  const day = (name, label) => html`
    <div class="field">
      <label for="filter-${name}">${label}</label>
      <input id="filter-${name}" type="datetime-local" step="1" value=${filters[name]} onChange=${(event) => setFilter(name, event.target.value)} />
    </div>`;
  return html`
    <form class="filters" role="search" aria-label="Messages" onSubmit=${(event) => event.preventDefault()}>
      <div class="first">
        <${TextFilter} name="q" value=${filters.q} set=${setFilter}>${(props) => html`
          <div class="field search">
            <label for="search">Search <kbd aria-hidden="true">/</kbd></label>
            <input id="search" type="search" ...${props} placeholder="Text of an id or an error" aria-keyshortcuts="/" />
          </div>`}<//>
        <div class="field">
          <label for="filter-state">State</label>
          <select id="filter-state" onChange=${(event) => setFilter("state", event.target.value)}>
            <option value="" selected=${!filters.state}>Any</option>
            ${STATES.map((state) => html`<option value=${state} selected=${filters.state === state}>${stateWord(state)}</option>`)}
          </select>
        </div>
        <button type="button" aria-expanded=${more} aria-controls="more-filters" onClick=${() => setMore(!more)}>${more ? "Fewer filters" : "More filters"}</button>
        ${FILTERS.some((name) => filters[name]) && html`<a class="button plain" href="/messages">Clear</a>`}
      </div>
      <div class="more" id="more-filters" hidden=${!more}>
        ${text("type", "Type", "order-placed")} ${text("handler", "Handler", "a destination’s name")}
        ${day("from", "From")} ${day("to", "To")}
      </div>
    </form>`;
}

// Waiting says that a paused list is not the newest.
function Waiting() {
  const { phase, missed } = useConnection();
  return phase === "paused" && html`
    <${Notice}>Live updates are paused. ${missed ? "Something has changed since." : "Nothing has changed since."}
      <button type="button" class="inline" onClick=${resumeLive}>Resume</button><//>`;
}

// The API leads to older pages only; the way back is what this entry of the history remembers.
function Pager({ after, next }) {
  const trail = history.state?.trail ?? [];
  const older = () => {
    go(withQuery({ after: next }), { state: { trail: [...trail, after] } });
  };
  const newer = () => {
    go(withQuery({ after: trail.at(-1) ?? "" }), { state: { trail: trail.slice(0, -1) } });
  };
  return (after || next) && html`
    <nav class="pager" aria-label="Pages">
      ${after && html`<a class="button plain" href=${withQuery({ after: "" })}>Newest</a>`}
      <button type="button" disabled=${!after} onClick=${newer}>${icons.back()}Newer</button>
      <button type="button" disabled=${!next} onClick=${older}>Older${icons.forward()}</button>
    </nav>`;
}
