// Charts as SVG: bars in a stack, and lines. Times run from left to right.

import { h, svg } from "./dom.js";
import { counted } from "./times.js";

const WIDTH = 480;
const HEIGHT = 140;
const FOOT = 2;
const HEAD = 2;

/** Make a stack of bars per bucket; `hrefOf(bucket)` leads to its calls. */
export function bars(figures, series, told, hrefOf) {
  const { buckets } = figures;
  const most = Math.max(1, ...buckets.map((bucket) => bucket.calls));
  const width = WIDTH / buckets.length;
  const stacks = buckets.map((bucket, at) => {
    if (!bucket.calls) return null;
    let top = HEIGHT;
    const parts = series.map(([name, , valueOf]) => {
      const height = (valueOf(bucket) / most) * (HEIGHT - HEAD);
      if (!height) return null;
      top -= height;
      return svg("rect", { class: name, x: at * width + 0.5, y: top, width: Math.max(1, width - 1), height });
    });
    const { calls, refused, failed } = bucket;
    const words = `${hour(bucket.start)}: ${counted(calls, "call")}, ${refused} refused, ${failed} failed`;
    const whole = svg("rect", { class: "hit", x: at * width, y: 0, width, height: HEIGHT });
    return svg("a", { href: hrefOf(bucket), "aria-label": words }, svg("title", {}, words), whole, parts);
  });
  return chart(`Calls over time: ${told}`, figures, series, counted(most, "call"), stacks);
}

/** Make a line per series, logarithmic: latencies differ by orders. A bucket without calls is a gap. */
export function lines(figures, series, told, worded) {
  const { buckets } = figures;
  const most = Math.max(0.001, ...buckets.map((bucket) => bucket.p99_ms ?? 0));
  const width = WIDTH / buckets.length;
  const drawn = series.map(([name, , valueOf]) => {
    let isDown = false;
    const path = buckets.map((bucket, at) => {
      const value = valueOf(bucket);
      if (value === null) {
        isDown = false;
        return "";
      }
      const x = (at + 0.5) * width;
      const y = HEIGHT - (Math.log1p(value) / Math.log1p(most)) * (HEIGHT - HEAD);
      // A line of no length is a dot, for a bucket between two gaps.
      const step = isDown ? `L${x} ${y}` : `M${x} ${y}h0.01`;
      isDown = true;
      return step;
    });
    return svg("path", { class: name, d: path.join("") });
  });
  return chart(`Latency over time: ${told}`, figures, series, `${worded(most)}, logarithmic`, drawn);
}

function chart(label, figures, series, most, drawn) {
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT + FOOT}`, role: "group", "aria-label": label, class: "chart" },
    svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT + 0.5, y2: HEIGHT + 0.5 }),
    svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEAD, y2: HEAD }),
    drawn,
  );
  const legend = series.map(([name, words]) => h("span", { class: `key ${name}` }, words));
  const ends = h(
    "div",
    { class: "ends" },
    h("span", {}, hour(figures.since)),
    h("span", { class: "legend" }, legend),
    h("span", {}, hour(figures.until)),
  );
  return h("figure", {}, h("span", { class: "most" }, most), picture, ends);
}

function hour(time) {
  const moment = new Date(time);
  const isToday = moment.toDateString() === new Date().toDateString();
  const day = isToday ? "" : moment.toLocaleDateString(undefined, { month: "short", day: "numeric" }) + " ";
  return day + moment.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
}
