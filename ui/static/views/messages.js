import { html, useState } from "../lib/preact.js";
import { get } from "../lib/api.js";
import { useQuery } from "../lib/query.js";
import { every } from "../lib/pace.js";
import { resumeLive, watchBacklog } from "../lib/realtime/index.js";
import * as shapes from "../lib/shapes.js";
import { Empty } from "../components/copy.js";
import { FIRST_MESSAGE } from "../components/examples.js";
import { Choice, SearchFilter, TextField, TimeField, moment } from "../components/filters.js";
import { useConnection } from "../components/live.js";
import { MessageTable } from "../components/messages.js";
import { Freshness, Loading, Notice, ProblemBox } from "../components/notice.js";
import { Pager } from "../components/pager.js";
import { STATES, stateWord } from "../components/state.js";

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
  const { data, problem, loading, refresh } = useQuery(key, read, { every: every.messages, told: watchBacklog });
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

function Filters({ filters, problem }) {
  const open = Boolean(filters.type || filters.handler || filters.from || filters.to);
  const [more, setMore] = useState(open);
  return html`
    <form class="filters" role="search" aria-label="Messages" onSubmit=${(event) => event.preventDefault()}>
      <div class="first">
        <${SearchFilter} value=${filters.q} />
        <${Choice} name="state" label="State" value=${filters.state} options=${STATES.map((state) => [state, stateWord(state)])} />
        <button type="button" aria-expanded=${more} aria-controls="more-filters" onClick=${() => setMore(!more)}>${more ? "Fewer filters" : "More filters"}</button>
        ${FILTERS.some((name) => filters[name]) && html`<a class="button plain" href="/messages">Clear</a>`}
      </div>
      <div class="more" id="more-filters" hidden=${!more}>
        <${TextField} name="type" label="Type" value=${filters.type} placeholder="order-placed" problem=${problem} />
        <${TextField} name="handler" label="Handler" value=${filters.handler} placeholder="a destination’s name" problem=${problem} />
        <${TimeField} name="from" label="From" value=${filters.from} />
        <${TimeField} name="to" label="To" value=${filters.to} />
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
