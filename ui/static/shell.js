import { html, useEffect, useRef, useState } from "./lib/preact.js";
import { useBacklog } from "./lib/backlog.js";
import { count } from "./lib/format.js";
import { useCommand } from "./lib/query.js";
import { mayOperate, signOut } from "./lib/session.js";
import { THEMES, setTheme, theme } from "./lib/theme.js";
import { horn, icons } from "./components/icons.js";
import { LiveIndicator } from "./components/live.js";
import { Announcer, ProblemBox } from "./components/notice.js";

const NAVIGATION = [
  ["/", "Overview", "overview"],
  ["/messages", "Messages", "messages"],
  ["/dead-letters", "Dead letters", "dead-letter"],
  ["/destinations", "Destinations", "destinations"],
  ["/documents", "Documents", "documents"],
  ["/desk", "Desk", "desk", "lending"], // where that module is on
  ["/records", "Records", "records"],
];

// Shell is the frame around every view. view is a function of the backlog, which the navigation shows too.
export function Shell({ who, address, title, view }) {
  const backlog = useBacklog();
  const leave = useCommand(signOut);
  const main = useRef(null);
  const place = useRef(address.path);

  useEffect(() => {
    document.title = `${title} · Posthorn`;
  }, [title]);
  // A new view takes the focus to its heading, as a new page would; filters and the like leave it where it is.
  useEffect(() => {
    if (place.current === address.path) return;
    place.current = address.path;
    scrollTo(0, 0);
    main.current?.querySelector("h1")?.focus({ preventScroll: true });
  }, [address]);

  const skip = (event) => {
    event.preventDefault();
    main.current?.focus();
  };
  // On a phone the navigation may be wider than the screen.
  useEffect(() => document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [address.path]);

  return html`
    <div class="shell">
      <a class="skip" href="#main" onClick=${skip}>Skip to content</a>
      <div class="side">
        <a class="brand" href="/">${horn()}<span>Posthorn</span></a>
        <${Navigation} path=${address.path} modules=${who.modules ?? []} deadLetters=${backlog.data?.total.deadLetters ?? 0} />
        <div class="who">
          <p><a class="main-link" href="/access" aria-current=${address.path === "/access" ? "page" : undefined}>${who.actor}<span class="hidden">, access</span></a><span class="faint">${who.role}${who.tenant ? `, tenant ${who.tenant}` : ""}</span></p>
          ${mayOperate() && html`<a class="button plain" href="/audit" aria-current=${address.path === "/audit" ? "page" : undefined}>${icons.audit()}Audit</a>`}
          <button type="button" class="plain" disabled=${leave.busy} onClick=${leave.run}>${icons.leave()}Sign out</button>
        </div>
      </div>
      <header class="bar">
        <a class="brand" href="/" aria-label="Posthorn, overview">${horn()}<span>Posthorn</span></a>
        <${LiveIndicator} />
        <${ThemeSwitch} />
        <a class="button plain icon signout" href="/access" aria-label="Access" title="Access">${icons.access()}</a>
      </header>
      <main class="main" id="main" tabindex="-1" ref=${main}>
        <div class="view"><${ProblemBox} problem=${leave.problem} />${view(backlog)}</div>
      </main>
      <${Announcer} />
    </div>`;
}

const Navigation = ({ path, modules, deadLetters }) => html`
  <nav class="nav" aria-label="Views">
    <ul>${NAVIGATION.filter(([, , , module]) => !module || modules.includes(module)).map(([to, name, icon]) => html`
      <li key=${to}><a href=${to} aria-current=${current(path, to) ? "page" : undefined}>
        ${icons[icon]()}<span>${name}</span>
        ${to === "/dead-letters" && deadLetters > 0 && html`<span class="badge">${count(deadLetters)}</span>`}
      </a></li>`)}
    </ul>
  </nav>`;

const current = (path, to) => (to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`));

function ThemeSwitch() {
  const [chosen, setChosen] = useState(theme());
  const choose = (next) => {
    setTheme(next);
    setChosen(next);
  };
  // On a phone only the chosen one is shown, and leads to the next.
  const press = (name) => choose(name === chosen ? THEMES[(THEMES.indexOf(name) + 1) % THEMES.length] : name);
  return html`
    <div class="themes" role="group" aria-label="Theme">
      ${THEMES.map((name) => html`
        <button key=${name} type="button" class="plain icon" aria-pressed=${name === chosen} aria-label=${`${name} theme`} title=${`${name} theme`}
          onClick=${() => press(name)}>${icons[name]()}</button>`)}
    </div>`;
}
