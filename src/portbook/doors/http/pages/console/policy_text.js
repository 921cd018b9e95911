// A policy as the lines of a settings file: something to change and to try.

const LISTS = ["tools", "kinds", "effects", "tags", "callers", "sessions"];
const DEFAULTS = { default: "allow", approval: "never", approver: "operator", require_redaction: false };

/** Return the rules and limits that `GET /operator/policy` lists, as TOML. */
export function policyText({ rules, limits }) {
  const set = limits.filter(({ name, value }) => isSet(name, value));
  const table = set.map(({ name, value }) => `${name} = ${toml(value)}`);
  return (
    [["[policy]", ...table], ...rules.map(ruleLines)].map((lines) => lines.join("\n")).join("\n\n") + "\n"
  );
}

/** Return whether a limit is not what holds without it. */
export function isSet(name, value) {
  if (value === null || (Array.isArray(value) && !value.length)) return false;
  return DEFAULTS[name] !== value;
}

function ruleLines(rule) {
  const lists = LISTS.filter((name) => rule[name] && rule[name].join() !== "*");
  return [
    "[[policy.rules]]",
    `name = ${toml(rule.name)}`,
    ...lists.map((name) => `${name} = ${toml(rule[name])}`),
    ...(Object.keys(rule.where ?? {}).length ? [`where = ${toml(rule.where)}`] : []),
    `action = ${toml(rule.action)}`,
    ...(rule.approver === "client" ? ['approver = "client"'] : []),
  ];
}

// Texts are written alike in JSON and TOML, but for one character.
function toml(value) {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (value && typeof value === "object" && !JSON.isRawJSON?.(value)) {
    const members = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)} = ${toml(each)}`);
    return members.length ? `{ ${members.join(", ")} }` : "{}";
  }
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
