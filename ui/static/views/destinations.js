import { html, useState } from "../lib/preact.js";
import { get } from "../lib/api.js";
import { count, share } from "../lib/format.js";
import { useQuery } from "../lib/query.js";
import { every } from "../lib/pace.js";
import { mayOperate } from "../lib/session.js";
import * as shapes from "../lib/shapes.js";
import { Empty } from "../components/copy.js";
import { CreateDestination } from "../components/create-destination.js";
import { FIRST_DESTINATION } from "../components/examples.js";
import { icons } from "../components/icons.js";
import { Flow } from "../components/flow.js";
import { Loading, ProblemBox, Told } from "../components/notice.js";
import { go } from "../router.js";

const read = async (signal) => shapes.destinations(await get("/v1/destinations", { signal }));

export function Destinations({ backlog }) {
  const { data, problem, refresh } = useQuery("destinations", read, { every: every.destinations });
  const [creating, setCreating] = useState(false);
  const created = (name) => {
    setCreating(false);
    if (name) go(`/destinations/${encodeURIComponent(name)}`);
    else refresh();
  };
  return html`
    <header class="head">
      <h1 tabindex="-1">Destinations</h1>
      ${mayOperate() && html`<div class="actions"><button type="button" class="primary" onClick=${() => setCreating(true)}>${icons.plus()}New destination</button></div>`}
      <p>Where messages go. Each destination has a lane of its own, so that a slow one delays no other.</p>
    </header>
    ${history.state?.told && html`<${Told}>${history.state.told}<//>`}
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    ${!data && !problem && html`<${Loading} what="destinations" />`}
    ${data?.length === 0 && html`<section class="card"><${Empty} title="No destination yet" command=${FIRST_DESTINATION()}>
      Messages that no route wants are kept as <code>unrouted</code>; none is lost. Create a destination here, or from a terminal:<//></section>`}
    ${data?.length > 0 && html`
      <ul class="destinations">
        ${data.map((d) => html`<${Card} key=${d.name} destination=${d} lane=${backlog.data?.lanes.find((lane) => lane.handler === d.name)} changed=${refresh} />`)}
      </ul>`}
    ${creating && html`<${CreateDestination} onClose=${created} />`}`;
}

function Card({ destination: d, lane, changed }) {
  return html`
    <li class="card destination">
      <div class="what">
        <h2><a class="main-link" href=${`/destinations/${encodeURIComponent(d.name)}`}>${d.name}</a> <span class="faint small">${d.kind}</span></h2>
        <p class="target mono">${d.url ?? d.path}</p>
        <p class="types">${d.types.map((type) => html`<code key=${type}>${type}</code>`)}</p>
      </div>
      <dl class="mini">
        <div><dt>Pending</dt><dd>${count(lane?.pending)}</dd></div>
        <div><dt>Dead letters</dt><dd>${lane?.deadLetters > 0 ? html`<a class="bad" href=${`/dead-letters?handler=${encodeURIComponent(d.name)}`}>${count(lane.deadLetters)}</a>` : count(lane?.deadLetters)}</dd></div>
        <div><dt>Success 5 min</dt><dd>${share(lane?.success)}</dd></div>
      </dl>
      <${Flow} destination=${d} lane=${lane} changed=${changed} />
    </li>`;
}
