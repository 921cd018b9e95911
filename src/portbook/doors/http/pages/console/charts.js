// Charts as SVG: bars in a stack, and lines. Times run from left to right; labels are texts beside the picture.

import { h, svg } from "./dom.js";
import { counted } from "./times.js";

const WIDTH = 480;
const HEIGHT = 120;

/** Make a stack of bars per bucket; `hrefOf(bucket)` leads to its calls. */
export function bars(figures, series, told, hrefOf) {
  const { buckets } = figures;
  const top = roundedUp(Math.max(...buckets.map((bucket) => bucket.calls)));
  const width = WIDTH / buckets.length;
  const stacks = buckets.map((bucket, at) => {
    if (!bucket.calls) return null;
    let y = HEIGHT;
    const parts = series.map(([name, , valueOf]) => {
      const height = (valueOf(bucket) / top) * HEIGHT;
      if (!height) return null;
      y -= height;
      return svg("rect", { class: name, x: at * width + 0.5, y, width: Math.max(1, width - 1), height });
    });
    const { calls, refused, failed } = bucket;
    const words = `${hour(bucket.start)}: ${counted(calls, "call")}, ${refused} refused, ${failed} failed`;
    return svg(
      "a",
      { href: hrefOf(bucket), "aria-label": words },
      svg("title", {}, words),
      whole(at, width),
      parts,
    );
  });
  const marks = [top, top / 2, 0].map((mark) => mark.toLocaleString("en"));
  return chart(`Calls over time: ${told}`, figures, series, marks, stacks);
}

/** Make a line per series, logarithmic: latencies differ by orders. A bucket without calls is a gap. */
export function lines(figures, series, told, worded) {
  const { buckets } = figures;
  const known = buckets.filter((bucket) => bucket.calls);
  const [low, high] = decades(known.flatMap((bucket) => series.map(([, , valueOf]) => valueOf(bucket))));
  const width = WIDTH / buckets.length;
  const heightOf = (value) => ((Math.log10(Math.max(value, 10 ** low)) - low) / (high - low)) * HEIGHT;
  const drawn = series.map(([name, , valueOf]) => {
    let isDown = false;
    const path = buckets.map((bucket, at) => {
      if (!bucket.calls) {
        isDown = false;
        return "";
      }
      const place = `${(at + 0.5) * width} ${HEIGHT - heightOf(valueOf(bucket))}`;
      // A line of no length is a dot, for a bucket between two gaps.
      const step = isDown ? `L${place}` : `M${place}h0.01`;
      isDown = true;
      return step;
    });
    return svg("path", { class: name, d: path.join("") });
  });
  const hints = buckets.map((bucket, at) => {
    if (!bucket.calls) return null;
    const values = series.map(([, words, valueOf]) => `${words} ${worded(valueOf(bucket))}`);
    return svg("g", {}, svg("title", {}, `${hour(bucket.start)}: ${values.join(", ")}`), whole(at, width));
  });
  const marks = Array.from({ length: high - low + 1 }, (_, at) => markOf(high - at));
  return chart(`Latency over time: ${told}`, figures, series, marks, [drawn, hints]);
}

// The smallest of 2, 4, 10, 20, 40, 100 … that is not below: its half is a whole number, too.
function roundedUp(number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, number)));
  return [2, 4, 10].map((each) => each * power).find((each) => each >= number);
}

// The powers of ten around values.
function decades(values) {
  if (!values.length) return [0, 1];
  const low = Math.floor(Math.log10(Math.max(0.001, Math.min(...values))));
  return [low, Math.max(low + 1, Math.ceil(Math.log10(Math.max(0.001, ...values))))];
}

function markOf(power) {
  return power < 3 ? `${10 ** power} ms` : `${10 ** (power - 3)} s`;
}

function whole(at, width) {
  return svg("rect", { class: "hit", x: at * width, y: 0, width, height: HEIGHT });
}

function chart(label, figures, series, marks, drawn) {
  const grid = marks.map((_, at) => {
    const y = (at / (marks.length - 1)) * HEIGHT;
    return svg("line", { class: at === marks.length - 1 ? "axis" : "grid", x1: 0, x2: WIDTH, y1: y, y2: y });
  });
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "group",
      "aria-label": label,
      class: "chart",
    },
    grid,
    drawn,
  );
  const legend = series.map(([name, words]) => h("span", { class: `key ${name}` }, words));
  const middle = (Date.parse(figures.since) + Date.parse(figures.until)) / 2;
  return h(
    "figure",
    {},
    h("figcaption", { class: "legend" }, legend),
    h(
      "div",
      { class: "marks", "aria-hidden": "true" },
      marks.map((mark) => h("span", {}, mark)),
    ),
    picture,
    h(
      "div",
      { class: "ends" },
      [figures.since, middle, figures.until].map((time) => h("span", {}, hour(time))),
    ),
  );
}

function hour(time) {
  const moment = new Date(time);
  const isToday = moment.toDateString() === new Date().toDateString();
  const day = isToday ? "" : moment.toLocaleDateString(undefined, { month: "short", day: "numeric" }) + " ";
  return day + moment.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
}
