import { html, render, useEffect, useState } from "./lib/preact.js";
import { check, session, watchSession } from "./lib/session.js";
import { applyTheme } from "./lib/theme.js";
import { followLinks, match, useAddress } from "./router.js";
import { Shell } from "./shell.js";
import { ProblemBox } from "./components/notice.js";
import { Access } from "./views/access.js";
import { Audit } from "./views/audit.js";
import { DeadLetters } from "./views/dead-letters.js";
import { Desk } from "./views/desk.js";
import { Destination } from "./views/destination.js";
import { Destinations } from "./views/destinations.js";
import { Document } from "./views/document.js";
import { Documents } from "./views/documents.js";
import { Message } from "./views/message.js";
import { Messages } from "./views/messages.js";
import { Overview } from "./views/overview.js";
import { Record } from "./views/record.js";
import { Records } from "./views/records.js";
import { SignIn, setupProof } from "./views/signin.js";

// Every address with its view and its title.
const ROUTES = [
  ["/", { view: Overview, title: () => "Overview" }],
  ["/setup", { view: Overview, title: () => "Overview" }],
  ["/sign-in", { view: Overview, title: () => "Overview" }],
  ["/messages", { view: Messages, title: () => "Messages" }],
  ["/messages/:id", { view: Message, title: ({ id }) => `Message ${id}` }],
  ["/dead-letters", { view: DeadLetters, title: () => "Dead letters" }],
  ["/destinations", { view: Destinations, title: () => "Destinations" }],
  ["/destinations/:name", { view: Destination, title: ({ name }) => `Destination ${name}` }],
  ["/documents", { view: Documents, title: () => "Documents" }],
  ["/documents/:collection", { view: Documents, title: ({ collection }) => `Documents in ${collection}` }],
  ["/documents/:collection/:id", { view: Document, title: ({ collection, id }) => `Document ${collection}/${id}` }],
  ["/desk", { view: Desk, title: () => "Desk" }],
  ["/records", { view: Records, title: () => "Records" }],
  ["/access", { view: Access, title: () => "Access" }],
  ["/audit", { view: Audit, title: () => "Audit" }],
  ["/records/:kind/:id", { view: Record, title: ({ kind, id }) => `${kind}/${id}` }],
];

const Nowhere = () => html`
  <header class="head"><h1 tabindex="-1">Nothing is here</h1><p>No view has this address. <a href="/">Go to the overview</a></p></header>`;

const setup = setupProof();

function App() {
  const [who, setWho] = useState(undefined);
  const [problem, setProblem] = useState(null);
  const [proof, setProof] = useState(setup);
  const address = useAddress();
  useEffect(() => watchSession(setWho), []);
  useEffect(() => {
    if (proof || session()) return undefined; // a link in hand is used before anybody asks who is signed in
    let timer = 0;
    const ask = () =>
      check().then(
        () => setProblem(null),
        (fault) => {
          setProblem(fault);
          timer = setTimeout(ask, 3000);
        },
      );
    ask();
    return () => clearTimeout(timer);
  }, [proof]);
  useEffect(() => {
    if (who === null) document.title = "Sign in · Posthorn";
  }, [who]);

  if (proof || who === null) return html`<${SignIn} setup=${proof} who=${who} onDone=${() => setProof("")} />`;
  if (who === undefined) return html`<main class="signin"><div class="signin-box"><${ProblemBox} problem=${problem} /></div></main>`;
  const [route, values] = match(ROUTES, address.path);
  const View = route?.view ?? Nowhere;
  const view = (backlog) => html`<${View} key=${address.path} ...${values} query=${address.query} backlog=${backlog} />`;
  return html`<${Shell} who=${who} address=${address} title=${route?.title(values) ?? "Nothing is here"} view=${view} />`;
}

// "/" leads to the search of a view, as people know it from elsewhere.
function shortcuts(event) {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.getElementById("search");
  if (!search || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  search.focus();
  search.select();
}

applyTheme();
const root = document.getElementById("app");
followLinks(root);
addEventListener("keydown", shortcuts);
render(html`<${App} />`, root);
