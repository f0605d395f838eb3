import { html } from "../lib/preact.js";
import { get, path } from "../lib/api.js";
import { useQuery } from "../lib/query.js";
import { mayOperate } from "../lib/session.js";
import * as shapes from "../lib/shapes.js";
import { Empty } from "../components/copy.js";
import { Freshness, Loading, Notice, ProblemBox } from "../components/notice.js";
import { Pager } from "../components/pager.js";
import { Time } from "../components/time.js";

const LIMIT = 50;

// What each action did, to a reader.
const WORDS = {
  "delivery.replay": "replayed a delivery", "delivery.cancel": "gave up a delivery", "delivery.skip": "passed over a dead letter", "message.resend": "sent a message again",
  "destination.create": "created a destination", "destination.delete": "deleted a destination", "destination.pause": "paused a destination",
  "destination.resume": "resumed a destination", "destination.backfill": "began a backfill", "destination.change": "changed a destination",
  "destination.test": "tried a destination out", "destination.rotate-secret": "gave a destination a new secret",
  "session.open": "signed in", "session.end": "signed out", "session.end-others": "signed out everywhere else",
  "connection.close": "closed live connections of", "token.create": "created an API token", "token.revoke": "revoked an API token",
};

// subjectLink leads to what was acted on, where this console shows it.
function subjectLink(e) {
  if (e.action.startsWith("destination.") && e.action !== "destination.delete") return path("destinations", e.subject);
  return /^(delivery|message)\./.test(e.action) ? path("messages", e.subject) : "";
}

// Audit is what was done by whom and why, the newest first.
export function Audit({ query }) {
  const after = query.get("after") ?? "";
  const read = async (signal) => (mayOperate() ? shapes.audit(await get("/v1/audit", { signal, query: { limit: LIMIT, cursor: after } })) : null);
  const { data, problem, loading, refresh } = useQuery(`audit ${after}`, read, { every: after ? 0 : 10_000 });
  return html`
    <header class="head"><h1 tabindex="-1">Audit</h1><p>What was changed by hand: by whom, why, and of a replay the failure that it answers. The newest first.</p></header>
    ${!mayOperate() && html`<${Notice}>The audit needs an operator.<//>`}
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    <${Freshness} value=${data?.freshness} />
    ${!data && loading && html`<${Loading} what="the audit" />`}
    ${data && html`
      <section class="card" aria-label="Audit">
        ${data.entries.length > 0 ? html`<${Entries} entries=${data.entries} />` : html`<${Empty} title="Nothing yet">Nobody has changed anything by hand.<//>`}
      </section>
      <${Pager} after=${after} next=${data.next} />`}`;
}

const Entries = ({ entries }) => html`
  <table class="table audit" role="table" aria-label="Audit, the newest first">
    <thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Who</th><th role="columnheader" scope="col">Did what</th>
      <th role="columnheader" scope="col">Why</th><th role="columnheader" scope="col" class="number">When</th></tr></thead>
    <tbody role="rowgroup">
      ${entries.map((e, i) => html`
        <tr role="row" key=${`${e.at} ${e.action} ${e.subject} ${i}`}>
          <td role="cell" class="c-who"><code>${e.actor}</code></td>
          <td role="cell" class="c-did">${WORDS[e.action] ?? html`<code>${e.action}</code>`}${e.handler && html`<span class="muted"> to ${e.handler}</span>`}
            <div>${subjectLink(e) ? html`<a class="id" href=${subjectLink(e)}>${e.subject}</a>` : html`<span class="id">${e.subject}</span>`}</div></td>
          <td role="cell" class="c-why">${e.detail || html`<span class="faint">–</span>`}${e.failure && html`<div class="small faint">in answer to ${e.failure}</div>`}</td>
          <td role="cell" class="number c-when muted"><${Time} at=${e.at} /></td>
        </tr>`)}
    </tbody>
  </table>`;
