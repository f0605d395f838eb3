import { html, useState } from "../lib/preact.js";
import { get, post } from "../lib/api.js";
import { count, plural, span } from "../lib/format.js";
import { useQuery } from "../lib/query.js";
import * as shapes from "../lib/shapes.js";
import { ProblemBox, Told, announce } from "./notice.js";
import { ReasonDialog } from "./reason-dialog.js";
import { Time } from "./time.js";

const EVERY = 5_000;

// lagging is when a client is worth a glance: it has not taken what was written to it for longer than a slow line needs.
const LAGGING = 2_000;

const read = async (signal) => shapes.connections(await get("/v1/connections", { signal }));

// Connections is who listens to live updates, for an administrator, who may close a user's streams.
export function Connections() {
  const { data, problem, refresh } = useQuery("connections", read, { every: EVERY });
  const [asked, setAsked] = useState("");
  const [told, setTold] = useState("");
  const ended = (done) => {
    setAsked("");
    if (!done) return;
    const sentence = `${plural(done.closed, "stream was", "streams were")} closed.`;
    setTold(sentence);
    announce(sentence);
    refresh();
  };
  const reasons = Object.entries(data?.closed ?? {}).map(([reason, n]) => `${reason.replaceAll("-", " ")} ${count(n)}`).sort();
  return html`
    <section class="card" aria-labelledby="connections">
      <header><h2 id="connections">Live connections</h2>${data && html`<p class="aside">${plural(data.connections.length, "stream")}</p>`}</header>
      ${told && html`<div class="body"><${Told}>${told}<//></div>`}
      <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
      ${data?.connections.length === 0 && html`<p class="empty">Nobody listens.</p>`}
      ${data?.connections.length > 0 && html`
        <div class="scroll"><table class="table">
          <thead><tr><th scope="col">Who</th><th scope="col">From</th><th scope="col">Listens to</th><th scope="col" class="number">Behind</th>
            <th scope="col" class="number">Told</th><th scope="col" class="number">Since</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
          <tbody>${data.connections.map((c) => html`<tr key=${c.id}>
            <td><code>${c.user}</code><div class="small muted">${c.role}, by ${c.by}</div></td>
            <td class="mono">${c.remote || html`<span class="faint">this machine</span>`}</td>
            <td>${c.hears.slice(0, 3).map((name) => html`<code key=${name}>${name}</code> `)}${c.hears.length > 3 && html`<span class="muted">and ${count(c.hears.length - 3)} more</span>`}</td>
            <td class="number">${c.lag > LAGGING ? html`<span class="bad">${span(c.lag)}</span>` : html`<span class="faint">–</span>`}${c.queued > 0 && html`<div class="small muted">${count(c.queued)} wait</div>`}</td>
            <td class="number">${count(c.delivered)}${c.coalesced > 0 && html`<div class="small muted">${count(c.coalesced)} coalesced</div>`}</td>
            <td class="number muted"><${Time} at=${c.since} /></td>
            <td class="number"><button type="button" class="plain" aria-label=${`Disconnect ${c.user}`} onClick=${() => setAsked(c.user)}>Disconnect …</button></td>
          </tr>`)}</tbody>
        </table></div>`}
      ${reasons.length > 0 && html`<p class="body small muted">Ended since the start: ${reasons.join(", ")}.</p>`}
    </section>
    ${asked && html`
      <${ReasonDialog} title=${`Disconnect ${asked}?`} verb="Disconnect" danger required=${false} onClose=${ended}
        run=${(reason) => post("/v1/connections/disconnect", { user: asked, reason })}>
        <p>Every stream of <strong>${asked}</strong> is closed at once; nothing that waits for it is delivered any more.</p>
        <p class="muted">Whoever still has access comes back by themselves. To keep somebody out, revoke their API token or end their session.</p>
      <//>`}`;
}
