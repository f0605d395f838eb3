import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { useCommand } from "../lib/query.js";
import { check, session, signIn } from "../lib/session.js";
import { ShellCode } from "../components/copy.js";
import { Field } from "../components/dialog.js";
import { horn } from "../components/icons.js";
import { ProblemBox } from "../components/notice.js";
import { go } from "../router.js";

// setupProof takes the proof of a one-time link out of the address, so that it stays neither in it nor in the history. It stands behind
// the hash, which browsers send to nobody.
export function setupProof() {
  if (location.pathname !== "/setup") return "";
  const proof = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  if (location.hash) history.replaceState({}, "", "/setup");
  return proof;
}

export function SignIn({ setup = "", who, onDone }) {
  const [token, setToken] = useState("");
  const enter = useCommand(signIn);
  const started = useRef(false);
  const submit = async (proof) => {
    if (!(await enter.run(proof))) return;
    setToken("");
    onDone?.();
    if (/^\/(setup|sign-in)/.test(location.pathname)) go("/", { replace: true });
  };
  useEffect(() => {
    if (!setup || started.current) return;
    started.current = true; // the link works once
    // A link that no longer works may meet somebody who is signed in already.
    submit({ setup }).then(() => session() === undefined && check().catch(() => {}));
  }, [setup]);
  const byToken = (event) => {
    event.preventDefault();
    if (token.trim()) submit({ token: token.trim() });
  };
  const viaLink = setup && enter.busy;
  return html`
    <main class="signin" id="main">
      <div class="signin-box">
        <p class="brand">${horn(28)}<span>Posthorn</span></p>
        <h1 tabindex="-1">Sign in</h1>
        ${viaLink && html`<p class="muted" role="status">The one-time link is being exchanged for a session …</p>`}
        <${ProblemBox} problem=${enter.problem} />
        ${who && enter.problem && html`<p>You are signed in as ${who.actor} already. <button type="button" onClick=${onDone}>Go on</button></p>`}
        <form onSubmit=${byToken}>
          <${Field} label="API token" wrong=${enter.problem?.at?.("token")} hint="It is sent once and not kept in this browser; the session is a cookie."
            render=${(props) => html`<input ...${props} type="password" autocomplete="current-password" placeholder="ph_…" spellcheck=${false}
              required value=${token} onInput=${(event) => setToken(event.target.value)} />`} />
          <button class="primary" disabled=${enter.busy || !token.trim()}>${enter.busy ? "Signing in …" : "Sign in"}</button>
        </form>
        <div class="muted small signin-help">
          <p>No API token? On the machine that runs Posthorn, make one:</p>
          <${ShellCode}>${`posthorn tokens create --role operator`}<//>
          <p>The first start also prints a link that signs in one browser, once.</p>
        </div>
      </div>
    </main>`;
}
