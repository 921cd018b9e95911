// Policy: the rules in force, which of them decides a call, and what a changed file would have decided.

import { badge, empty, facts, h, table } from "./dom.js";
import { parseExact } from "./exact_json.js";
import { callsHref } from "./place.js";
import { isSet } from "./policy_text.js";
import { explainCard, replayCard } from "./policy_trial.js";
import { ask } from "./server.js";

const MATCHES = ["tools", "kinds", "effects", "tags", "callers", "sessions"];

/** Fill the view. */
export function showPolicy(room, place) {
  const rules = h("section", { "aria-label": "Rules in force" });
  const known = ask("operator", "operator/policy", { parse: parseExact });
  room.append(rules, explainCard(place.query), replayCard(known));
  known.then(
    (policy) => rules.replaceChildren(...rulesOf(policy)),
    (problem) => rules.replaceChildren(h("p", { class: "bad", role: "alert" }, problem.message)),
  );
  return {};
}

function rulesOf({ rules, limits, file, digest }) {
  const rows = rules.map((rule) => [
    rule.name,
    badge(rule.action),
    matchesOf(rule),
    h("code", {}, rule.place),
    h(
      "a",
      { href: callsHref({ rule: rule.name }), "aria-label": `calls that ${rule.name} decided` },
      "calls",
    ),
  ]);
  const shown = rows.length
    ? h(
        "div",
        { class: "card" },
        h("p", { class: "dim" }, "Of the rules that match a call, one that denies wins, then one that asks."),
        table("Rules", ["Rule", "Action", "Matches", "Place", "Calls"], rows),
      )
    : empty("No rules", "Every call is decided by the limits below.");
  const set = limits.filter(({ name, value }) => isSet(name, value));
  const pairs = limits.map(({ name, value, place }) => [
    name,
    isSet(name, value)
      ? [h("code", {}, textOf(value)), ` (${place})`]
      : h("span", { class: "dim" }, unset(value)),
  ]);
  return [
    h("h2", {}, "In force"),
    h(
      "p",
      { class: "dim" },
      file ? `${file}, digest ${digest.slice(0, 12)}` : "No settings file: these are the defaults.",
    ),
    shown,
    h(
      "details",
      { class: "card" },
      h("summary", {}, `Limits: ${set.length} of ${limits.length} are set`),
      facts(pairs),
    ),
  ];
}

function unset(value) {
  return value === null || typeof value === "object" ? "not set" : `${value}, by default`;
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function matchesOf(rule) {
  const named = MATCHES.filter((name) => rule[name] && rule[name].join() !== "*");
  const words = [
    ...named.map((name) => `${name}: ${rule[name].join(", ")}`),
    ...Object.entries(rule.where ?? {}).map(([pointer, test]) => `${pointer} ${JSON.stringify(test)}`),
  ];
  return words.length ? words.map((each) => h("div", {}, each)) : "every call";
}
