import { html } from "../lib/preact.js";
import { icons } from "./icons.js";
import { go, withQuery } from "../router.js";

// The API leads to older pages only; the way back is what this entry of the history remembers.
export function Pager({ after, next }) {
  const trail = history.state?.trail ?? [];
  const older = () => {
    go(withQuery({ after: next }), { state: { trail: [...trail, after] } });
  };
  const newer = () => {
    go(withQuery({ after: trail.at(-1) ?? "" }), { state: { trail: trail.slice(0, -1) } });
  };
  return (after || next) && html`
    <nav class="pager" aria-label="Pages">
      ${after && html`<a class="button plain" href=${withQuery({ after: "" })}>Newest</a>`}
      <button type="button" disabled=${!after} onClick=${newer}>${icons.back()}Newer</button>
      <button type="button" disabled=${!next} onClick=${older}>Older${icons.forward()}</button>
    </nav>`;
}
