import { html, useRef, useState } from "../lib/preact.js";
import { get, path, post } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useCommand, useQuery } from "../lib/query.js";
import { every } from "../lib/pace.js";
import { watchDesk } from "../lib/realtime/index.js";
import { mayOperate } from "../lib/session.js";
import * as shapes from "../lib/shapes.js";
import { Field } from "../components/dialog.js";
import { Freshness, Loading, ProblemBox, announce } from "../components/notice.js";
import { icons } from "../components/icons.js";
import { Time } from "../components/time.js";

const readDesk = async (signal) => shapes.desk(await get("/v1/lending/desk", { signal }));
const readStatistics = (signal) => get("/v1/lending/statistics", { signal });

// Desk is the branch's counter: a clerk lends and takes back on one screen, and any other shows it.
export function Desk() {
  const { data, problem, refresh } = useQuery("desk", readDesk, { watch: watchDesk });
  return html`
    <header class="head">
      <h1 tabindex="-1">Desk</h1>
      <p>${data ? html`${count(data.onLoan)} on loan, ${data.overdue > 0 ? html`<span class="bad">${count(data.overdue)} overdue</span>` : "none overdue"}` : "The lending branch"}</p>
    </header>
    ${mayOperate() && html`<div class="halves"><${Lend} onDone=${refresh} /><${TakeBack} onDone=${refresh} /></div>`}
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    ${!data && !problem && html`<${Loading} what="the desk" />`}
    ${data && html`<${Loans} loans=${data.latest} onDone=${refresh} /><${Queue} reservations=${data.reservations} onDone=${refresh} />`}
    <${Statistics} />`;
}

// useForm runs a command with the fields of a form, empties it when it worked, and goes back to its first field, as a scanner needs it.
function useForm(fields, send, said, onDone) {
  const [values, setValues] = useState(fields);
  const first = useRef(null);
  const command = useCommand(async () => {
    const answer = await send(values);
    announce(said(answer));
    setValues(fields);
    onDone();
    return answer;
  });
  const submit = async (event) => {
    event.preventDefault();
    await command.run();
    first.current?.querySelector("input")?.focus();
  };
  const input = (name) => ({ value: values[name], onInput: (event) => setValues({ ...values, [name]: event.target.value.trim() }) });
  return { values, submit, input, first, ...command };
}

function Lend({ onDone }) {
  const form = useForm({ member: "", copy: "" }, (values) => post("/v1/lending/loans", values), (loan) => `${loan.title} is lent to ${loan.member}`, onDone);
  return html`
    <section class="card" aria-labelledby="lend">
      <header><h2 id="lend">Lend</h2></header>
      <form class="body counter" ref=${form.first} onSubmit=${form.submit}>
        <div class="row">
          <${Field} label="Member" wrong=${form.problem?.at("member")} render=${(field) => html`<input ...${field} ...${form.input("member")} placeholder="M-101" autocomplete="off" spellcheck=${false} required />`} />
          <${Field} label="Copy" wrong=${form.problem?.at("copy")} render=${(field) => html`<input ...${field} ...${form.input("copy")} placeholder="C-101" autocomplete="off" spellcheck=${false} required />`} />
        </div>
        <p><button class="primary" disabled=${form.busy}>Lend</button></p>
        <${ProblemBox} problem=${form.problem} />
      </form>
    </section>`;
}

function TakeBack({ onDone }) {
  const form = useForm({ copy: "" }, (values) => post("/v1/lending/returns", values), (loan) => `${loan.title} is back`, onDone);
  return html`
    <section class="card" aria-labelledby="take-back">
      <header><h2 id="take-back">Take back</h2></header>
      <form class="body counter" ref=${form.first} onSubmit=${form.submit}>
        <${Field} label="Returned copy" wrong=${form.problem?.at("copy")} render=${(field) => html`<input ...${field} ...${form.input("copy")} placeholder="C-101" autocomplete="off" spellcheck=${false} required />`} />
        <p><button class="primary" disabled=${form.busy}>Take back</button></p>
        <${ProblemBox} problem=${form.problem} />
      </form>
    </section>`;
}

// Each state has a shape beside its words.
const loanState = (loan) =>
  loan.returned ? html`<span class="state" data-state="dispatched">${icons.dispatched()}returned</span>`
    : loan.overdue ? html`<span class="state" data-state="dead-letter">${icons["dead-letter"]()}overdue</span>`
      : html`<span class="state" data-state="processing">${icons.processing()}on loan</span>`;

function Loans({ loans, onDone }) {
  const act = useCommand(async (address) => {
    await post(address);
    onDone();
  });
  return html`
    <section class="card" aria-labelledby="latest-loans">
      <header><h2 id="latest-loans">Latest loans</h2></header>
      <${ProblemBox} problem=${act.problem} />
      ${loans.length === 0 ? html`<p class="empty">Nothing was lent yet.</p>` : html`
        <div class="scroll"><table class="table" id="loans">
          <thead><tr><th scope="col">State</th><th scope="col">Title</th><th scope="col">Copy</th><th scope="col">Member</th><th scope="col" class="number">Lent</th><th scope="col" class="number">Due</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
          <tbody>${loans.map((loan) => html`<tr key=${loan.id} data-loan=${loan.id}>
            <td>${loanState(loan)}</td><td class="title">${loan.title}</td><td class="mono">${loan.copy}</td><td class="mono">${loan.member}</td>
            <td class="number muted"><${Time} at=${loan.borrowed} /></td>
            <td class="number muted">${!loan.returned && html`<${Time} at=${loan.due} />`}</td>
            <td class="number">${!loan.returned && mayOperate() && html`<button type="button" class="plain" aria-label=${`Renew the loan of ${loan.copy}`} disabled=${act.busy} onClick=${() => act.run(`/v1${path("lending", "loans", loan.id, "renew")}`)}>Renew</button>`}</td>
          </tr>`)}</tbody>
        </table></div>`}
    </section>`;
}

function Queue({ reservations, onDone }) {
  const reserve = useForm({ member: "", work: "" }, (values) => post("/v1/lending/reservations", values), (r) => `${r.title} is reserved for ${r.member}`, onDone);
  const act = useCommand(async (address) => {
    await post(address);
    onDone();
  });
  const advisory = reservations.find((r) => r.position)?.position.freshness;
  return html`
    <section class="card" aria-labelledby="reservations">
      <header><h2 id="reservations">Reservations</h2></header>
      <${ProblemBox} problem=${act.problem} />
      ${reservations.length === 0 ? html`<p class="empty">Nobody waits.</p>` : html`
        <div class="scroll"><table class="table">
          <thead><tr><th scope="col">State</th><th scope="col">Title</th><th scope="col">Member</th><th scope="col">Copy</th><th scope="col" class="number">Placed</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
          <tbody>${reservations.map((r) => html`<tr key=${r.id}>
            <td>${r.state === "ready" ? html`<span class="state" data-state="dispatched">${icons.dispatched()}ready</span>` : html`<span class="state" data-state="pending">${icons.pending()}place ${r.position?.number}</span>`}</td>
            <td class="title">${r.title}</td><td class="mono">${r.member}</td><td class="mono">${r.copy}</td><td class="number muted"><${Time} at=${r.placed} /></td>
            <td class="number">${mayOperate() && html`
              ${r.state === "ready" && html`<button type="button" class="plain" aria-label=${`Lend the copy held for ${r.member}`} disabled=${act.busy} onClick=${() => act.run(`/v1${path("lending", "reservations", r.id, "collect")}`)}>Collect</button>`}
              <button type="button" class="plain" aria-label=${`Cancel the reservation of ${r.member}`} disabled=${act.busy} onClick=${() => act.run(`/v1${path("lending", "reservations", r.id, "cancel")}`)}>Cancel</button>`}</td>
          </tr>`)}</tbody>
        </table></div>`}
      ${advisory && html`<div class="body"><${Freshness} value=${advisory} /></div>`}
      ${mayOperate() && html`
        <form class="body counter" ref=${reserve.first} onSubmit=${reserve.submit} aria-label="Reserve a work">
          <div class="row">
            <${Field} label="Reserve for member" wrong=${reserve.problem?.at("member")} render=${(field) => html`<input ...${field} ...${reserve.input("member")} placeholder="M-101" autocomplete="off" spellcheck=${false} required />`} />
            <${Field} label="Work" wrong=${reserve.problem?.at("work")} render=${(field) => html`<input ...${field} ...${reserve.input("work")} placeholder="moby-dick" autocomplete="off" spellcheck=${false} required />`} />
          </div>
          <p><button disabled=${reserve.busy}>Reserve</button></p>
          <${ProblemBox} problem=${reserve.problem} />
        </form>`}
    </section>`;
}

function Statistics() {
  const { data, problem, refresh } = useQuery("lending statistics", readStatistics, { every: every.statistics });
  return html`
    <${ProblemBox} problem=${problem} retry=${refresh} kept=${Boolean(data)} />
    ${data?.works.length > 0 && html`
      <section class="card" aria-labelledby="statistics">
        <header><h2 id="statistics">Most borrowed</h2></header>
        <table class="table">
          <thead><tr><th scope="col">Title</th><th scope="col" class="number">Borrowed</th><th scope="col" class="number">Returned</th></tr></thead>
          <tbody>${data.works.slice(0, 10).map((w) => html`<tr key=${w.work}><td>${w.title}</td><td class="number">${count(w.borrowed)}</td><td class="number">${count(w.returned)}</td></tr>`)}</tbody>
        </table>
        <div class="body"><${Freshness} value=${data.freshness} /></div>
      </section>`}`;
}
