// Filters of recorded calls: fields that change the address, and the same tests for calls that arrive live.

import { button, folded, h, labelled } from "./dom.js";
import { callsHref, placeOf } from "./place.js";
import { now } from "./server.js";

const DAY_MS = 86_400_000;
const LONGEST_MS = 366 * DAY_MS;
const SPANS = { "15m": 900_000, "1h": 3_600_000, "24h": DAY_MS, "7d": 7 * DAY_MS };
const WITHIN = [
  ["", "any time"],
  ["15m", "last 15 min"],
  ["1h", "last hour"],
  ["24h", "last 24 hours"],
  ["today", "today"],
  ["yesterday", "yesterday"],
  ["7d", "last 7 days"],
  ["range", "from … to …"],
];
const CHOICES = {
  status: [
    ["", "any"],
    ["success", "success"],
    ["failure", "refused or failed"],
    ["refused", "refused"],
    ["failed", "failed"],
  ],
  decision: [
    ["", "any"],
    ["allow", "allow"],
    ["ask", "ask"],
    ["deny", "deny"],
  ],
  within: WITHIN,
  show: [
    ["", "calls of tools"],
    ["all", "everything recorded"],
  ],
};
const FIELDS = [
  ["tool", "Tool", "name or files.*"],
  ["caller", "Caller", "name"],
  ["status", "Status"],
  ["decision", "Decision"],
  ["door", "Door", "stdio, http /mcp"],
  ["within", "Time"],
  ["show", "Show"],
];
// Filters whose field offers names that were recorded.
const SUGGESTED = ["tool", "caller"];
const TIMES = [
  ["since", "From"],
  ["until", "To"],
];
// Filters that only links set; they are shown where they are set.
const LINKED = ["rule", "reason", "approval"];

/** Make the fields for filters. */
export function filterBar(filters) {
  const fields = FIELDS.map(([name, title, hint], at) => field(name, title, hint, filters, at === 0));
  const linked = LINKED.filter((name) => filters[name]).map((name) =>
    h(
      "a",
      {
        class: "chip",
        href: callsHref({ ...filters, [name]: "" }),
        "aria-label": `Remove the filter ${name}`,
      },
      `${name}: ${filters[name]}`,
      h("span", { "aria-hidden": "true" }, " ×"),
    ),
  );
  const isBetween = filters.within === "range" || filters.since || filters.until;
  const times = isBetween ? TIMES.map(([name, title]) => timeField(name, title, filters)) : [];
  const isFiltered = Object.values(filters).some(Boolean);
  const clear = isFiltered ? button("Clear", () => (location.hash = callsHref({}))) : null;
  return folded(
    "Filters",
    isFiltered,
    h(
      "div",
      { class: "filters", role: "search", "aria-label": "Filter calls" },
      fields,
      times,
      linked,
      clear,
    ),
  );
}

// Beside those of the address, because a different field may have changed it since this one was made.
function choose(chosen) {
  location.hash = callsHref({ ...placeOf(location.hash).query, ...chosen });
}

// The browser's own field has the time of this place, without seconds where there are none.
function timeField(name, title, filters) {
  const moment = new Date(filters[name] ?? NaN);
  const local = isNaN(moment) ? "" : new Date(moment - moment.getTimezoneOffset() * 60_000).toISOString();
  const change = ({ target }) =>
    choose({ within: "range", [name]: target.value ? new Date(target.value).toISOString() : "" });
  const input = h("input", {
    type: "datetime-local",
    value: local.slice(0, 19),
    step: "1",
    "data-name": name,
    on: { change },
  });
  return labelled(title, input, { class: filters[name] ? "labelled set" : "labelled" });
}

function field(name, title, hint, filters, isFirst) {
  const change = (event) => {
    const times = name === "within" ? { since: "", until: "" } : {};
    choose({ [name]: event.target.value.trim(), ...times });
  };
  const isRange = name === "within" && (filters.since || filters.until);
  const value = isRange ? "range" : (filters[name] ?? "");
  const input = CHOICES[name]
    ? h("select", { "data-name": name, on: { change } }, options(CHOICES[name], value))
    : h("input", {
        "data-name": name,
        placeholder: hint,
        value,
        spellcheck: "false",
        autocomplete: "off",
        "data-first": isFirst,
        list: SUGGESTED.includes(name) ? `seen-${name}` : null,
        on: { change },
      });
  return labelled(title, input, { class: value ? "labelled set" : "labelled" });
}

/** Make what the fields offer: names that figures are about. */
export function suggestions(figures) {
  const names = {
    tool: figures.tools.map((each) => toolName(each.name)),
    caller: figures.callers.map((each) => each.name),
  };
  return SUGGESTED.map((name) =>
    h(
      "datalist",
      { id: `seen-${name}` },
      names[name].filter(Boolean).map((each) => h("option", { value: each })),
    ),
  );
}

function options(choices, value) {
  return choices.map(([key, words]) => h("option", { value: key, selected: key === value }, words));
}

/** Return the query of the routes for filters; figures need both ends of a time. */
export function queryOf(filters, needsTimes = false) {
  const { within, show, ...query } = filters;
  const [since, until] = timesOf(within);
  query.since ??= since;
  query.until ??= until;
  // What operators look at is recorded too, without a tool.
  if (!query.tool && show !== "all") query.tool = "*";
  if (needsTimes && !query.since) {
    // Charts of any time begin with the first call that the records have.
    query.since = new Date(now() - LONGEST_MS).toISOString();
    query.fit = 1;
  }
  return query;
}

function timesOf(within) {
  if (Object.hasOwn(SPANS, within ?? "")) return [new Date(now() - SPANS[within]).toISOString(), undefined];
  const midnight = new Date(now());
  midnight.setHours(0, 0, 0, 0);
  if (within === "today") return [midnight.toISOString(), undefined];
  const before = new Date(midnight);
  before.setDate(before.getDate() - 1);
  if (within === "yesterday") return [before.toISOString(), midnight.toISOString()];
  return [undefined, undefined];
}

/** Return how a call ended, as the filter `status` has it. */
export function statusOf(row) {
  if (row.reason === null) return "success";
  return row.code >= 500 ? "failed" : "refused";
}

/** Return the name of a tool as people write it. */
export function toolName(tool) {
  return (tool ?? "").replace(/^mcp\.tool:/, "");
}

// Behind the name of a rule a record has its place: `no refunds (portbook.toml:12)`.
const PLACED = / \(([^()]*)\)$/;

/** Return the name of a rule as its author wrote it. */
export function ruleName(rule) {
  return (rule ?? "").replace(PLACED, "");
}

/** Return the file and line of a rule. */
export function rulePlace(rule) {
  return PLACED.exec(rule ?? "")?.[1] ?? null;
}

const TESTS = {
  tool: (row, wanted) => row.tool !== null && globOf(toolName(wanted)).test(toolName(row.tool)),
  caller: (row, wanted) => row.caller === wanted,
  decision: (row, wanted) => row.decision === wanted,
  rule: (row, wanted) => row.rule === wanted || ruleName(row.rule) === wanted,
  reason: (row, wanted) => row.reason === wanted,
  approval: (row, wanted) => row.approval === wanted,
  door: (row, wanted) => (row.door ?? "").startsWith(wanted),
  status: (row, wanted) =>
    wanted === statusOf(row) || wanted === String(row.code) || (wanted === "failure" && row.reason !== null),
  since: (row, wanted) => row.at >= wanted,
  until: (row, wanted) => row.at < wanted,
};

/** Return whether a call that has just ended matches filters. */
export function isWanted(row, filters) {
  return Object.entries(queryOf(filters)).every(([name, wanted]) => !wanted || TESTS[name]?.(row, wanted));
}

function globOf(pattern) {
  const parts = pattern
    .split(/([*?])/)
    .map((part) => ({ "*": ".*", "?": "." })[part] ?? part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join("")}$`, "s");
}
