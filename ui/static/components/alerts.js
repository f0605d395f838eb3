import { html } from "../lib/preact.js";
import { get } from "../lib/api.js";
import { count, share, span } from "../lib/format.js";
import { useQuery } from "../lib/query.js";
import { every } from "../lib/pace.js";
import * as shapes from "../lib/shapes.js";
import { icons } from "./icons.js";
import { Runbook, recordPath } from "./record-link.js";
import { Time } from "./time.js";

const read = async (signal) => shapes.alerts(await get("/v1/alerts", { signal }));

const measured = (value, unit) => (unit === "seconds" ? span(value * 1000) : unit === "ratio" ? share(value) : count(value));

// Alerts says what is wrong now, each with what to do. Nothing is shown while nothing is wrong.
export function Alerts() {
  const { data } = useQuery("alerts", read, { every: every.alerts });
  if (!data?.alerts.length) return null;
  return html`
    <section class="problem alerts" role="alert" aria-label="Alerts">
      ${icons.attempt()}
      <ul>${data.alerts.map((a) => html`
        <li key=${a.alert + a.handler}>
          <strong>${a.title}</strong>${a.handler && html` of <a href=${`/messages?handler=${encodeURIComponent(a.handler)}`}>${a.handler}</a>`}:
          ${" "}${measured(a.value, a.unit)}, threshold <a href=${recordPath("settings", a.alert)}>${measured(a.threshold, a.unit)}</a>, raised <${Time} at=${a.raised} />.
          ${a.runbooks.map((id) => html` <${Runbook} key=${id} id=${id}>What to do: ${id.replaceAll("-", " ")}<//>`)}
        </li>`)}</ul>
      ${data.receiver?.waiting > 0 && html`<p class="small">${data.receiver.destination} has not been told of ${data.receiver.waiting} yet.</p>`}
    </section>`;
}
