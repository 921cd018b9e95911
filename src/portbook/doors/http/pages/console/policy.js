// Policy: the rules in force, which of them decides a call, and what a changed file would have decided.

import { badge, empty, facts, h, table } from "./dom.js";
import { callsHref } from "./place.js";
import { explainCard, replayCard } from "./policy_trial.js";
import { ask } from "./server.js";
import { counted } from "./times.js";

const MATCHES = ["tools", "kinds", "effects", "tags", "callers", "sessions"];

/** Fill the view. */
export function showPolicy(room, place) {
  const rules = h("section", { "aria-label": "Rules in force" });
  room.append(rules, explainCard(place.query), replayCard());
  ask("operator", "operator/policy").then(
    (policy) => rules.replaceChildren(...rulesOf(policy)),
    (problem) => rules.replaceChildren(h("p", { class: "bad", role: "alert" }, problem.message)),
  );
  return {};
}

function rulesOf({ rules, limits, file, digest }) {
  const rows = rules.map((rule, at) => [
    rule.name,
    badge(rule.action),
    matchesOf(rule),
    h("code", {}, rule.place),
    h(
      "a",
      { href: callsHref({ decision: rule.action }), "aria-label": `Calls: ${rule.action}, ${at + 1}` },
      "calls",
    ),
  ]);
  const shown = rows.length
    ? h(
        "div",
        { class: "card" },
        table("Rules, the first that matches decides", ["Rule", "Action", "Matches", "Place", "Calls"], rows),
      )
    : empty("No rules", "Every call is decided by the limits below.");
  const pairs = limits.map(({ name, value, place }) => [name, `${textOf(value)} (${place})`]);
  return [
    h("h2", {}, "In force"),
    h(
      "p",
      { class: "dim" },
      file ? `${file}, digest ${digest.slice(0, 12)}` : "No settings file: these are the defaults.",
    ),
    shown,
    h("details", { class: "card" }, h("summary", {}, counted(limits.length, "limit")), facts(pairs)),
  ];
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
