// Figures: calls, refusals and latencies over time, and what they are made of.

import { bars, lines } from "./charts.js";
import { toolName } from "./call_filters.js";
import { folded, h } from "./dom.js";
import { callsHref } from "./place.js";
import { count, counted, latency } from "./times.js";

const OUTCOMES = [
  ["success", "success", (bucket) => bucket.calls - bucket.refused - bucket.failed],
  ["refused", "refused", (bucket) => bucket.refused],
  ["failed", "failed", (bucket) => bucket.failed],
];
const PERCENTILES = [
  ["p50", "p50", (bucket) => bucket.p50_ms],
  ["p95", "p95", (bucket) => bucket.p95_ms],
  ["p99", "p99", (bucket) => bucket.p99_ms],
];

/** Make the charts and lists of figures; everything in them leads to the calls it is about. */
export function figuresOf(figures, filters) {
  const { total, step_s: step } = figures;
  const hrefOf = (bucket) => {
    const end = new Date(Date.parse(bucket.start) + step * 1000).toISOString();
    return callsHref({ ...filters, within: "range", since: bucket.start, until: end });
  };
  const told = `${counted(total.calls, "call")}, ${count(total.refused)} refused, ${count(total.failed)} failed`;
  const times = `p50 ${latency(total.p50_ms)}, p95 ${latency(total.p95_ms)}, p99 ${latency(total.p99_ms)}`;
  const cards = h(
    "div",
    { class: "figures-grid" },
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Calls"),
      h("p", { class: "told" }, told),
      bars(figures, OUTCOMES, told, hrefOf),
    ),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Latency"),
      h("p", { class: "told" }, times),
      lines(figures, PERCENTILES, times, latency),
    ),
    h(
      "section",
      { class: "card tops" },
      top("Tools", figures.tools, total.calls, (name) => ({ ...filters, tool: toolName(name) })),
      top("Callers", figures.callers, total.calls, (name) => ({ ...filters, caller: name })),
      top("Reasons", figures.reasons, total.refused + total.failed, (name) => ({ ...filters, reason: name })),
    ),
  );
  return folded(`Figures: ${told}`, false, cards);
}

function top(title, counts, all, filtersOf) {
  const named = counts.filter((each) => each.name !== null).slice(0, 4);
  if (!named.length) return null;
  const items = named.map((each) =>
    h(
      "li",
      {},
      h("a", { href: callsHref(filtersOf(each.name)) }, toolName(each.name)),
      h("span", {}, count(each.calls)),
    ),
  );
  const others = all - named.reduce((sum, each) => sum + each.calls, 0);
  if (others) items.push(h("li", {}, h("span", {}, "others"), h("span", {}, count(others))));
  return h("div", {}, h("h2", {}, title), h("ol", {}, items));
}
