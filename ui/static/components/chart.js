import { html, useEffect, useRef } from "../lib/preact.js";
import UPlot from "../vendor/uplot.js";
import { clock, rate } from "../lib/format.js";
import { onTheme } from "../lib/theme.js";

const STEPS = [0.5, ...[1, 10, 100, 1e3, 1e4, 1e5].flatMap((n) => [n, 2 * n, 5 * n])];
const BARS = { dispatched: "--dispatched", failed: "--dead-letter" };

// A canvas knows no custom properties and no light-dark(): an element that has the colour is asked.
function colour(token, within) {
  const probe = document.createElement("i");
  probe.style.color = `var(${token})`;
  within.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const faded = (c, alpha) => `rgba(${c.match(/[\d.]+/g).slice(0, 3).join(", ")}, ${alpha})`;

function options(box) {
  const ink = colour("--ink-3", box);
  const grid = { stroke: colour("--line", box), width: 1, ticks: false };
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: ink, font, ticks: { show: false }, grid };
  const dispatched = colour(BARS.dispatched, box);
  const failed = colour(BARS.failed, box);
  const none = { show: false };
  return {
    width: box.clientWidth, height: box.clientHeight, padding: [8, 18, 0, 0],
    legend: none,
    cursor: { drag: { setScale: false }, points: { size: 6 }, x: true, y: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.15)] } },
    axes: [
      { ...axis, grid: none, size: 24, space: 90, values: (_, at) => at.map((t) => clock(t * 1000).slice(0, 5)) },
      { ...axis, size: 38, space: 44, incrs: STEPS, values: (_, at) => at.map((v) => rate(v).replace(/\.0$/, "")) },
    ],
    series: [
      {},
      { stroke: failed, fill: faded(failed, 0.13), width: 1.5, points: none },
      { stroke: dispatched, fill: faded(dispatched, 0.13), width: 1.5, points: none }, // the last is drawn on top
    ],
  };
}

// Throughput draws [times, failed, dispatched] a second. The figures under the pointer stand in the caption; summary is for readers who do
// not see the canvas.
export function Throughput({ data, summary }) {
  const box = useRef(null);
  const told = useRef(null);
  const plot = useRef(null);
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const say = (u) => {
      const at = u.cursor.idx;
      const [times, failed, dispatched] = u.data;
      told.current.textContent = at == null || dispatched[at] == null ? "" : `${clock(times[at] * 1000)}: ${rate(dispatched[at])} dispatched, ${rate(failed[at])} failed a second`;
    };
    const make = () => {
      plot.current?.destroy();
      plot.current = new UPlot({ ...options(box.current), hooks: { setCursor: [say] } }, latest.current, box.current);
    };
    make();
    const size = new ResizeObserver(() => {
      const { clientWidth: width = 0, clientHeight: height = 0 } = box.current ?? {};
      if (plot.current && width > 0 && (width !== plot.current.width || height !== plot.current.height)) plot.current.setSize({ width, height });
    });
    size.observe(box.current);
    const themed = onTheme(make);
    return () => {
      size.disconnect();
      themed();
      plot.current.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(data), [data]);

  return html`
    <figure class="chart">
      <div ref=${box} role="img" aria-label=${summary}></div>
      <figcaption><span class="told" ref=${told}></span></figcaption>
    </figure>`;
}
