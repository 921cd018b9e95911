// One call: why it ended as it did, where its record is in the chain, and everything that was recorded.

import { ruleName, rulePlace, statusOf, toolName } from "./call_filters.js";
import { badge, facts, h, json } from "./dom.js";
import { callsHref, hrefOf } from "./place.js";
import { handArguments } from "./policy_trial.js";
import { clock, latency } from "./times.js";

/** Make the details of a call from its records, and from its approval if it has one. */
export function callDetail(answer, ticket) {
  const execution = answer.execution[0];
  const intent = answer.intent[0];
  const envelope = answer.envelope_validation[0]?.record;
  const record = execution?.record ?? intent?.record ?? {};
  const given = record.arguments ?? intent?.record.arguments ?? ticket?.arguments;
  return h(
    "article",
    { "aria-label": "The call" },
    h("h2", {}, toolName(record.tool_id) || envelope?.method || "A request"),
    h("p", { class: "outcome" }, badge(outcomeOf(answer, record)), " ", record.status_code ?? ""),
    whySentence(answer, record),
    facts([...endOf(record, envelope), ...originOf(record, envelope), ["request", answer.request_id]]),
    argumentsOf(given),
    explainLink(record, given),
    h("h3", {}, "In the chain"),
    position("execution", execution),
    position("intent", intent),
    h("p", {}, h("a", { href: "#/proof" }, "Verify the log")),
    h("h3", {}, "Records"),
    [...answer.execution, ...answer.intent, ...answer.envelope_validation].map(wholeRecord),
  );
}

// The same word as in the table, which has no calls that still run.
function outcomeOf({ outcome }, record) {
  return outcome === "failure" ? statusOf({ reason: record.error_class, code: record.status_code }) : outcome;
}

// In words first: the rule where one decided so, and what its reason says.
function whySentence({ outcome, says }, { decision, rule }) {
  if (outcome !== "failure") return null;
  const decided = { deny: "denies this call.", ask: "asks a person about this call." }[decision];
  return h(
    "p",
    { class: "why" },
    decided ? ["The rule ", h("strong", {}, ruleName(rule)), ` (${rulePlace(rule)}) ${decided} `] : null,
    says ?? null,
  );
}

function endOf(record, envelope) {
  const rule = ruleName(record.rule);
  const decided = record.decision
    ? [badge(record.decision), " by ", rule ? link(record.rule, { rule }) : "the default"]
    : null;
  return [
    ["why", why(record, envelope)],
    ["stopped at", stoppedAt(envelope?.error)],
    ["decision", decided],
    [
      "ended",
      record.timestamp ? [clock(record.timestamp), " ", h("span", { class: "dim" }, record.timestamp)] : null,
    ],
    ["took", record.latency_ms === undefined ? null : latency(record.latency_ms)],
  ];
}

function originOf(record, envelope) {
  const tool = toolName(record.tool_id);
  const door = envelope ? `${envelope.transport} ${envelope.route}`.trim() : null;
  const { approval_id: approval } = record;
  return [
    ["tool", tool ? link(tool, { tool }) : null],
    ["caller", record.caller ? link(record.caller, { caller: record.caller, show: "all" }) : null],
    ["door", door ? link(door, { door, show: "all" }) : null],
    ["approval", approval ? h("a", { href: hrefOf("waiting", approval) }, approval) : null],
    ["session", record.session_id],
    ["trace", record.trace_id],
  ];
}

function wholeRecord({ file, line, record }) {
  const place = `${file}:${line}`;
  return h("details", {}, h("summary", {}, place), json(record, `Record ${place}`));
}

function link(words, filters) {
  return h("a", { href: callsHref(filters) }, words);
}

function why(record, envelope) {
  const error = envelope?.error;
  if (!record.error_class && !error) return null;
  const found = (error?.violations ?? []).map((each) =>
    h("div", {}, `${each.pointer || "(root)"}: ${each.message}`),
  );
  return [
    h("strong", {}, record.error_class ?? error.reason),
    error?.note ? h("div", {}, error.note) : null,
    found,
  ];
}

function stoppedAt(error) {
  if (!error?.stage) return null;
  return `${error.stage}${error.executed ? ", after the tool ran" : ", before the tool ran"}`;
}

// Records hold arguments where the settings say so; an approval holds those that a person decided on.
function argumentsOf(given) {
  if (given === undefined) return h("p", { class: "dim" }, "Its arguments are not recorded.");
  return [h("h3", {}, "Arguments, redacted"), json(given, "Arguments, redacted")];
}

// The policy may be a different one by now.
function explainLink(record, given) {
  const tool = toolName(record.tool_id);
  if (!tool || !record.decision) return null;
  const hand = () => handArguments(given === undefined ? null : JSON.stringify(given, null, 2));
  const href = hrefOf("policy", "", { tool, caller: record.caller });
  return h("p", {}, h("a", { href, on: { click: hand } }, "How the policy of now decides such a call"));
}

function position(stream, located) {
  if (!located) return null;
  const { seq, prev, hash } = located.record;
  return facts([
    [stream, `${located.file}, line ${located.line}`],
    ["position", seq],
    ["after", prev ? h("code", {}, prev) : "the first record of its file"],
    ["hash", h("code", {}, hash ?? "")],
  ]);
}
