// Trials that put nothing in force: one call explained, and recorded calls decided by a changed file.

import { ruleName, toolName } from "./call_filters.js";
import { badge, button, facts, h, labelled, table } from "./dom.js";
import { parseExact } from "./exact_json.js";
import { callsHref } from "./place.js";
import { policyText } from "./policy_text.js";
import { ask } from "./server.js";
import { isEnter } from "./shortcuts.js";
import { count, counted } from "./times.js";

// Arguments that are to be explained: handed over in memory, because no address should hold them.
let handed = null;

/** Fill the arguments of the next explanation in. */
export function handArguments(text) {
  handed = text;
}

const EXAMPLE = '[[policy.rules]]\nname = "no refunds"\ntools = ["refund"]\naction = "deny"';

/** Make the card that explains a call; `query` fills it in. */
export function explainCard(query) {
  const plain = { spellcheck: "false", autocomplete: "off" };
  const tool = h("input", { value: query.tool ?? "", "data-first": true, ...plain });
  const caller = h("input", { value: query.caller ?? "", placeholder: "anonymous", ...plain });
  const given = h(
    "textarea",
    { rows: "3", class: "code", spellcheck: "false" },
    handed ?? query.args ?? "{}",
  );
  handed = null;
  const answer = h("div", { role: "status" });
  // Who pastes a whole call finds its parts where they belong.
  const sort = () => {
    const pasted = callIn(given.value);
    if (!pasted) return;
    tool.value = pasted.tool;
    given.value = JSON.stringify(pasted.args, null, 2);
  };
  given.addEventListener("paste", () => setTimeout(sort));
  const explain = () =>
    tell(answer, async () => {
      sort();
      const body = { tool: tool.value.trim(), args: argumentsIn(given.value) };
      if (caller.value.trim()) body.caller = caller.value.trim();
      return explained(await ask("operator", "operator/policy/explain", { body }));
    });
  const card = h(
    "section",
    { class: "card", "aria-label": "Explain a call" },
    h("h2", {}, "Which rule decides a call, and why"),
    h("div", { class: "filters" }, labelled("Tool", tool), labelled("Caller", caller)),
    labelled("Arguments as JSON, or a whole call", given),
    h("div", { class: "row" }, button("Explain", explain, { class: "primary" })),
    answer,
  );
  card.addEventListener("keydown", (event) => {
    if (isEnter(event) && (event.ctrlKey || event.metaKey || event.target.tagName === "INPUT")) explain();
  });
  return card;
}

/** Make the card that tries a changed file; `known` will be the policy in force. */
export function replayCard(known) {
  const file = h("textarea", { rows: "8", class: "code", spellcheck: "false", placeholder: EXAMPLE });
  const answer = h("div", { role: "status" });
  const replay = () =>
    tell(answer, async () => {
      answer.replaceChildren(h("p", {}, "Deciding the recorded calls anew"));
      return replayed(await ask("operator", "operator/policy/replay", { body: { policy: file.value } }));
    });
  return h(
    "section",
    { class: "card", "aria-label": "Try a changed policy" },
    h("h2", {}, "What a changed file would have decided"),
    h(
      "p",
      { class: "dim" },
      "Nothing is put in force: recorded calls are decided anew, and the differences are listed.",
    ),
    h(
      "div",
      { class: "row" },
      button("Begin with the rules in force", () =>
        tell(answer, async () => {
          file.value = policyText(await known);
          file.focus();
          return [];
        }),
      ),
      fileButton((text) => {
        file.value = text;
        file.focus();
      }),
    ),
    labelled("A portbook.toml, or its policy", file),
    h("div", { class: "row" }, button("Replay", replay, { class: "primary" })),
    answer,
  );
}

// What is chosen is read here, in the page; only the text in the field is sent.
function fileButton(onText) {
  const input = h("input", { type: "file", accept: ".toml,text/plain", hidden: true });
  input.addEventListener("change", async () => {
    const [chosen] = input.files;
    if (chosen) onText(await chosen.text());
    input.value = "";
  });
  return [button("Open a file", () => input.click()), input];
}

async function tell(place, make) {
  try {
    place.replaceChildren(...(await make()).filter(Boolean));
  } catch (problem) {
    place.replaceChildren(h("p", { class: "bad" }, problem.message));
  }
}

// A call as MCP sends it, as an envelope, or as the body of /execute; null for what is none.
function callIn(text) {
  let value;
  try {
    value = parseExact(text);
  } catch {
    return null;
  }
  const { method, params, tool_id: named, args } = value ?? {};
  if (method === "tools/call") return { tool: params?.name ?? "", args: params?.arguments ?? {} };
  if (method === "mcp.tool.invoke") return { tool: toolName(params?.tool), args: params?.input ?? {} };
  return typeof named === "string" ? { tool: toolName(named), args: args ?? {} } : null;
}

function argumentsIn(text) {
  try {
    return parseExact(text || "{}");
  } catch {
    throw new Error("The arguments are not JSON.");
  }
}

function explained({ decision, rule, place, tool, effect, reason, remedy, violations, warnings }) {
  const wrong = violations.map((each) =>
    h("div", { class: "bad" }, `${each.pointer || "(root)"}: ${each.message}`),
  );
  return [
    h(
      "p",
      { class: "verdict-line" },
      badge(decision),
      " by ",
      h("strong", {}, rule ?? "the default"),
      place ? ` (${place}) ` : " ",
      rule ? h("a", { href: callsHref({ rule }) }, "calls that it decided") : null,
    ),
    facts([
      ["tool", tool],
      ["effect", badge(effect)],
      ["reason", reason],
      ["what to do", remedy],
      ["arguments", wrong.length ? wrong : null],
      ["warnings", warnings.length ? warnings.map((each) => h("div", {}, each)) : null],
    ]),
  ];
}

function replayed({ replayed: calls, undecided, changes, complete, oldest, ignored }) {
  const rest = complete ? "" : ` Only those since ${oldest}: time was up.`;
  const isUnknown = changes.some((each) => [each.old.decision, each.new.decision].includes("unknown"));
  const note = isUnknown ? "Unknown: a rule looks at arguments, which records do not hold." : null;
  const rows = changes.map((each) => [
    h(
      "a",
      { href: callsHref({ tool: each.tool, caller: each.caller, rule: ruleName(each.old.rule) }) },
      each.tool,
    ),
    each.caller,
    count(each.calls),
    [badge(each.old.decision), ` ${each.old.rule}`],
    [badge(each.new.decision), ` ${each.new.rule}`],
  ]);
  const unsure = undecided ? `, ${count(undecided)} of them not for certain` : "";
  return [
    h("p", {}, `${counted(calls, "recorded call")} decided anew${unsure}.${rest}`),
    rows.length ? summaryOf(changes) : null,
    note ? h("p", { class: "dim" }, note) : null,
    ignored.length
      ? h("p", { class: "dim" }, `Not part of a policy, and ignored: ${ignored.join(", ")}.`)
      : null,
    rows.length
      ? table("Calls that would be decided differently", ["Tool", "Caller", "Calls", "Was", "Would be"], rows)
      : h("p", { class: "strong" }, "Every one of them would be decided the same way."),
  ];
}

// How many calls go from which decision to which: `13 calls: deny → allow`.
function summaryOf(changes) {
  const sums = new Map();
  for (const { old, new: next, calls } of changes) {
    const way = JSON.stringify([old.decision, next.decision]);
    sums.set(way, (sums.get(way) ?? 0) + calls);
  }
  const items = [...sums]
    .sort(([, a], [, b]) => b - a)
    .map(([way, calls]) => {
      const [before, after] = JSON.parse(way);
      const same = before === after ? " by a different rule" : "";
      return h("li", {}, h("strong", {}, counted(calls, "call")), badge(before), "→", badge(after), same);
    });
  return h("ul", { class: "ways", "aria-label": "In short" }, items);
}
