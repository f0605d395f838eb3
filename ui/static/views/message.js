import { html, useState } from "../lib/preact.js";
import { bytes, get, path, text as textOf } from "../lib/api.js";
import { plural, size } from "../lib/format.js";
import { member, prettyText, valid } from "../lib/json.js";
import { useQuery } from "../lib/query.js";
import { watchMessage } from "../lib/realtime/index.js";
import * as shapes from "../lib/shapes.js";
import { Json, asText, hexdump } from "../components/code.js";
import { Copy } from "../components/copy.js";
import { DeliveryTimeline } from "../components/timeline.js";
import { Freshness, Loading, ProblemBox } from "../components/notice.js";
import { State } from "../components/state.js";
import { Time } from "../components/time.js";

// urgentFirst puts what somebody may have to see to before what goes well; deliveries of equal urgency stay in their order.
const URGENCY = ["dead-letter", "failing", "processing", "pending", "dispatched"];
const urgency = (d) => URGENCY.indexOf(d.state === "pending" && d.last_error ? "failing" : d.state);
const urgentFirst = (deliveries) => [...deliveries].sort((a, b) => urgency(a) - urgency(b));

export function Message({ id, backlog }) {
  const address = `/v1${path("messages", id)}`;
  const read = async (signal) => shapes.message(await get(address, { signal }));
  const { data, problem, refresh } = useQuery(`message ${id}`, read, { watch: (fn) => watchMessage(id, fn) });
  const laneOf = (d) => backlog.data?.lanes.find((lane) => lane.handler === d.handler);
  return html`
    <header class="head">
      <h1 tabindex="-1">${data?.type ?? "Message"}</h1>
      ${data && html`<${State} state=${data.state} />`}
      <div class="actions"><a class="button plain" href=${`${address}`} target="_blank" rel="noopener">JSON</a></div>
    </header>
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    <${Freshness} value=${data?.freshness} />
    ${!data && !problem && html`<${Loading} what="the message" />`}
    ${data && html`
      <${Facts} message=${data} />
      <section class="card" aria-labelledby="deliveries">
        <header><h2 id="deliveries">Deliveries</h2><p class="aside">${data.deliveries.length > 1 ? `${plural(data.deliveries.length, "delivery", "deliveries")}, each with its own state` : "one handler"}</p></header>
        ${urgentFirst(data.deliveries).map((d) => html`<${DeliveryTimeline} key=${d.id} delivery=${d} message=${data} lane=${laneOf(d)} changed=${refresh} />`)}
      </section>
      ${data.masked?.length ? html`<${Masked} address=${address} id=${id} />` : html`<${Payload} address=${`${address}/payload`} id=${id} />`}
      <${Headers} headers=${data.headers} />`}`;
}

function Facts({ message: m }) {
  return html`
    <section class="card facts-card" aria-label="Facts">
      <dl class="facts">
        <div class="wide"><dt>Message id</dt><dd class="with-copy"><code>${m.id}</code><${Copy} text=${m.id} what="the message id" /></dd></div>
        <div class="wide"><dt>Occurred</dt><dd><${Time} at=${m.occurred} both /></dd></div>
        <div><dt>Kind</dt><dd>${m.kind}</dd></div>
        <div><dt>Type and version</dt><dd>${m.type} v${m.schema_version}</dd></div>
        <div><dt>Ordering key</dt><dd>${m.ordering_key ? html`<code>${m.ordering_key}</code>` : html`<span class="faint">none</span>`}</dd></div>
        <div><dt>Tenant</dt><dd>${m.tenant}</dd></div>
        ${m.deliver && html`<div class="wide"><dt>Not delivered before</dt><dd><${Time} at=${m.deliver} both /></dd></div>`}
      </dl>
    </section>`;
}

// Masked shows what a viewer may see of a payload: each closed field holds the name of its class.
function Masked({ address, id }) {
  const { data, problem, refresh } = useQuery(`masked ${id}`, async (signal) => ({ payload: member(await textOf(address, { signal }), "payload") }));
  return html`
    <section class="card" aria-labelledby="payload">
      <header><h2 id="payload">Payload</h2><p class="small faint">fields that are personal or secret are masked for viewers</p></header>
      <${ProblemBox} problem=${problem} retry=${refresh} />
      ${!data && !problem && html`<${Loading} what="the payload" />`}
      ${data && (data.payload === undefined ? html`<p class="loading">All of it is masked.</p>` : html`<${Json} text=${data.payload} label="Payload, masked" />`)}
    </section>`;
}

// Payload shows the stored bytes. They never pass through JSON.parse on their way to the screen, which would round numbers.
function Payload({ address, id }) {
  const { data, problem, refresh } = useQuery(`payload ${id}`, (signal) => bytes(address, { signal }));
  const [raw, setRaw] = useState(false);
  const text = data && asText(data.bytes);
  const json = text != null && valid(text);
  return html`
    <section class="card" aria-labelledby="payload">
      <header>
        <h2 id="payload">Payload</h2>
        ${data && html`<p class="small faint">${data.type}, ${size(data.bytes.length)}</p>
          <div class="aside tools">
            ${json && html`
              <div class="tabs" role="group" aria-label="How the payload is shown">
                <button type="button" aria-pressed=${!raw} onClick=${() => setRaw(false)}>Pretty</button>
                <button type="button" aria-pressed=${raw} onClick=${() => setRaw(true)}>Raw</button>
              </div>`}
            ${text != null && html`<${Copy} text=${raw || !json ? text : () => prettyText(text)} what="the payload" label="Copy" />`}
            <a class="button plain" href=${address} download=${`${id}.payload`}>Download</a>
          </div>`}
      </header>
      <${ProblemBox} problem=${problem} retry=${refresh} />
      ${!data && !problem && html`<${Loading} what="the payload" />`}
      ${data && (text == null
        ? html`<${Json} text=${hexdump(data.bytes)} raw label="Payload bytes, in hexadecimal" />`
        : html`<${Json} text=${text} raw=${raw} label="Payload" />`)}
    </section>`;
}

function Headers({ headers }) {
  const names = Object.keys(headers ?? {});
  return names.length > 0 && html`
    <section class="card" aria-labelledby="headers">
      <header><h2 id="headers">Headers</h2></header>
      <dl class="pairs body">
        ${names.map((name) => html`<div key=${name}><dt>${name}</dt><dd class="with-copy"><code>${String(headers[name])}</code>
          <${Copy} text=${String(headers[name])} what=${name} /></dd></div>`)}
      </dl>
    </section>`;
}
