import { html, useRef, useState } from "../lib/preact.js";
import { countLetters, replays } from "../lib/dead-letters.js";
import { count, exact, plural } from "../lib/format.js";
import { useCommand, useQuery } from "../lib/query.js";
import { Dialog } from "./dialog.js";
import { Loading, ProblemBox, announce } from "./notice.js";
import { ReasonField } from "./reason-dialog.js";

// filterWords says a filter in words: "of books, class failed".
export function filterWords(f) {
  const time = (text) => exact(Date.parse(text), false);
  const words = [
    f.handler && `of ${f.handler}`, f.class && `class ${f.class}`, f.type && `type ${f.type}`, f.q && `with “${f.q}” in the id or the error`,
    f.from && `occurred from ${time(f.from)}`, f.to && `occurred before ${time(f.to)}`,
  ].filter(Boolean);
  return words.join(", ") || "of every handler";
}

// BulkReplay counts what the filter meets, asks why, and replays it part by part. What was cut short is gone on with where it was; onClose
// receives whether anything was changed.
export function BulkReplay({ filter: shown, onClose }) {
  const begun = useRef(null); // once it has begun it goes on with the same filter, whatever the view shows
  const filter = begun.current ?? shown;
  const dry = useQuery(`replay ${JSON.stringify(filter)}`, (signal) => countLetters(filter, signal));
  const [reason, setReason] = useState("");
  const [missing, setMissing] = useState(false);
  const [done, setDone] = useState({ matched: 0, replayed: 0, cursor: "", parts: 0, ended: false });
  const at = useRef(done);
  const stop = useRef(false);
  const run = useCommand(async () => {
    stop.current = false;
    begun.current = filter;
    do {
      const answer = await replays(filter, { reason: reason.trim(), cursor: at.current.cursor });
      at.current = {
        matched: at.current.matched + answer.matched, replayed: at.current.replayed + answer.replayed, cursor: answer.next ?? "",
        parts: at.current.parts + 1, ended: !answer.next,
      };
      setDone(at.current);
    } while (!at.current.ended && !stop.current);
    announce(at.current.ended ? `${count(at.current.replayed)} replayed` : "Stopped");
  });
  const submit = () => {
    if (done.ended) return onClose(true);
    const none = reason.trim() === "";
    setMissing(none);
    if (!none && dry.data?.matched > 0) run.run();
    return undefined;
  };
  const wrong = missing ? "Say why." : (run.problem?.at?.("reason") ?? "");
  const began = run.busy || done.parts > 0;
  const all = dry.data?.matched ?? 0;
  return html`
    <${Dialog} title="Replay dead letters" lock=${run.busy} onClose=${() => onClose(done.parts > 0 || Boolean(run.problem))} onSubmit=${submit}>
      ${!dry.data && !dry.problem && html`<${Loading} what="how many there are" />`}
      <${ProblemBox} problem=${dry.problem} retry=${dry.refresh} />
      ${dry.data && html`
        <div class="consequences">
          <p><strong>${dry.data.more ? "At least " : ""}${plural(all, "dead letter")}</strong> ${filterWords(filter)}</p>
          ${dry.data.groups.length > 1 && html`<ul class="sums">${dry.data.groups.map((g) => html`<li key=${`${g.handler} ${g.class}`}><strong>${count(g.count)}</strong> of ${g.handler}, class ${g.class}</li>`)}</ul>`}
          ${all > 0
            ? html`<p class="muted">Each returns to pending with its id and its bytes, and has its own entry in the audit. If this is cut short, the same filter does the rest.</p>`
            : html`<p class="muted">There is nothing to replay.</p>`}
        </div>
        ${all > 0 && !began && html`<${ReasonField} value=${reason} onInput=${setReason} wrong=${wrong} example="the receiver was mended" />`}
        ${began && html`<${Progress} done=${done} all=${all} busy=${run.busy} />`}
        ${run.problem && !wrong && html`<${ProblemBox} problem=${run.problem} />`}`}
      <div class="buttons">
        ${run.busy
          ? html`<button type="button" onClick=${() => (stop.current = true)}>Stop after this part</button>`
          : done.ended ? null : html`<button type="button" onClick=${() => onClose(done.parts > 0)}>${began ? "Close" : "Cancel"}</button>`}
        <button class="primary" disabled=${run.busy || (!done.ended && all === 0)}>${words(done, run, all, dry.data?.more)}</button>
      </div>
    <//>`;
}

function words(done, run, all, more) {
  if (run.busy) return "Replaying …";
  if (done.ended) return "Done";
  if (done.parts > 0 || run.problem) return "Go on";
  return all > 0 ? `Replay ${more ? "all of them" : count(all)}` : "Replay";
}

function Progress({ done, all, busy }) {
  const left = done.matched - done.replayed;
  return html`
    <div class="progress">
      <progress max=${Math.max(1, all, done.matched)} value=${done.ended ? Math.max(1, all, done.matched) : done.matched} aria-label="How much was replayed"></progress>
      <p>${count(done.replayed)} of ${count(Math.max(all, done.matched))} replayed${done.ended ? "." : busy ? " …" : "; stopped."}
        ${left > 0 ? html` <span class="muted">${count(left)} had changed meanwhile.</span>` : null}
        ${done.ended && done.matched < all ? html` <span class="muted">${count(all - done.matched)} were no dead letters any more.</span>` : null}</p>
    </div>`;
}
