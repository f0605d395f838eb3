import { html, useState } from "../lib/preact.js";
import { plural } from "../lib/format.js";
import { useCommand } from "../lib/query.js";
import { endOthers, mayAdminister, mayOperate, session, signOut } from "../lib/session.js";
import { Connections } from "../components/connections.js";
import { Dialog } from "../components/dialog.js";
import { icons } from "../components/icons.js";
import { ProblemBox, Told, announce } from "../components/notice.js";
import { Time } from "../components/time.js";

const ROLES = {
  viewer: "sees everything but what is classified, and changes nothing",
  operator: "sees everything, and acts on deliveries and destinations",
  admin: "may do all that an operator may, and hands out access",
};

// Access is who is signed in here, where they are signed in besides, and what they may do.
export function Access() {
  const who = session();
  const leave = useCommand(signOut);
  const [asked, setAsked] = useState(false);
  const [told, setTold] = useState("");
  const ended = (answer) => {
    setAsked(false);
    if (!answer) return;
    const sentence = answer.ended > 0 ? `${plural(answer.ended, "other session was", "other sessions were")} ended.` : "There was no other session.";
    setTold(sentence);
    announce(sentence);
  };
  return html`
    <header class="head"><h1 tabindex="-1">Access</h1></header>
    ${told && html`<${Told}>${told}<//>`}
    <${ProblemBox} problem=${leave.problem} />
    <section class="card facts-card" aria-labelledby="you">
      <h2 id="you">This session</h2>
      <dl class="facts">
        <div class="wide"><dt>Signed in as</dt><dd><code>${who.actor}</code></dd></div>
        <div class="wide"><dt>Role</dt><dd>${who.role}${ROLES[who.role] && html` <span class="faint">${ROLES[who.role]}</span>`}</dd></div>
        ${who.tenant && html`<div><dt>Tenant</dt><dd>${who.tenant}</dd></div>`}
        ${who.expires_at && html`<div class="wide"><dt>Ends by itself</dt><dd><${Time} at=${Date.parse(who.expires_at)} both /></dd></div>`}
      </dl>
      <div class="flow-actions">
        <button type="button" disabled=${leave.busy} onClick=${leave.run}>${icons.leave()}Sign out</button>
        <button type="button" class="danger" onClick=${() => setAsked(true)}>Sign out everywhere else …</button>
      </div>
    </section>
    ${mayOperate() && html`
      <section class="card facts-card" aria-labelledby="trail">
        <h2 id="trail">Audit</h2>
        <p>What was changed by hand, by whom and why: replays, pauses, destinations, tokens. <a href="/audit">Read the audit</a></p>
      </section>`}
    ${mayAdminister() && html`<${Connections} />`}
    ${asked && html`<${Others} who=${who} onClose=${ended} />`}`;
}

function Others({ who, onClose }) {
  const end = useCommand(async () => onClose(await endOthers()));
  return html`
    <${Dialog} title="Sign out everywhere else?" onClose=${() => onClose(null)} lock=${end.busy} onSubmit=${end.run}>
      <div class="consequences">
        <p>Every other browser in which <strong>${who.actor}</strong> is signed in is signed out at once, and its live updates end. This one stays.</p>
        <p class="muted">API tokens stay valid; an administrator revokes them with <code>posthorn tokens revoke</code>.</p>
      </div>
      <${ProblemBox} problem=${end.problem} />
      <div class="buttons">
        <button type="button" onClick=${() => onClose(null)} disabled=${end.busy}>Cancel</button>
        <button class="danger" disabled=${end.busy}>${end.busy ? "Ending …" : "Sign out everywhere else"}</button>
      </div>
    <//>`;
}
