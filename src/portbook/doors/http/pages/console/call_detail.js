// One call: why it ended as it did, where its record is in the chain, and everything that was recorded.

import { toolName } from "./call_filters.js";
import { badge, facts, h, json } from "./dom.js";
import { callsHref, hrefOf } from "./place.js";
import { latency } from "./times.js";

/** Make the details of a call from its records, and from its approval if it has one. */
export function callDetail(answer, ticket) {
  const execution = answer.execution[0];
  const intent = answer.intent[0];
  const envelope = answer.envelope_validation[0]?.record;
  const record = execution?.record ?? intent?.record ?? {};
  return h(
    "article",
    { "aria-label": "The call" },
    h("h2", {}, toolName(record.tool_id) || envelope?.method || "A request"),
    h("p", {}, badge(answer.outcome), " ", record.status_code ?? ""),
    facts([...endOf(record, envelope), ...originOf(record, envelope), ["request", answer.request_id]]),
    argumentsOf(record.arguments ?? intent?.record.arguments ?? ticket?.arguments),
    h("h3", {}, "In the chain"),
    position("execution", execution),
    position("intent", intent),
    h("p", {}, h("a", { href: "#/proof" }, "Verify the log")),
    h("h3", {}, "Records"),
    [...answer.execution, ...answer.intent, ...answer.envelope_validation].map(wholeRecord),
  );
}

function endOf(record, envelope) {
  const decided = record.decision ? [badge(record.decision), " by ", record.rule ?? "the default"] : null;
  return [
    ["why", why(record, envelope)],
    ["stopped at", stoppedAt(envelope?.error)],
    ["decision", decided],
    ["ended", record.timestamp],
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
