// One tool: its form, its schema, and the answers it gave.

import { ArgumentsForm } from "./arguments_form.js";
import { copyRow } from "./commands.js";
import { badge, button, facts, h, json, paragraphs } from "./dom.js";
import { callsHref } from "./place.js";
import { SteppedCall } from "./running_call.js";

/** Make the panel of a tool from what `GET /tools/NAME` says of it. */
export function toolPanel(tool) {
  const form = new ArgumentsForm(tool.args_schema);
  const answers = h("section", { class: "answers", "aria-label": "Answers" });
  const start = (given, approvalId = null) => {
    const tell = (problems) => form.show(problems);
    const call = new SteppedCall(tool, given, approvalId, tell, () => start(given, call.approvalId));
    answers.prepend(call.element);
    call.element.scrollIntoView({ block: "nearest" });
  };
  const run = () => {
    const given = form.read();
    if (given !== null) start(given);
  };
  const title = `tool-${tool.name}`;
  const panel = h(
    "article",
    { class: "tool", "aria-labelledby": title },
    ...headOf(tool, title),
    h("div", { class: "beside" }, h("div", {}, argumentsPart(tool, form, run), answers), schemaPart(tool)),
  );
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  return panel;
}

function headOf(tool, title) {
  const tags = tool.tags.map((tag) => h("span", { class: "tag" }, tag));
  return [
    h("header", {}, h("h2", { id: title }, tool.name), badge(tool.effect), tags),
    paragraphs(tool.description, { class: "about" }),
    facts([
      ["from", tool.source],
      ["for MCP clients", tool.listed === tool.name ? null : tool.listed],
      ["uses", [...tool.allowed_methods, ...tool.allowed_domains].join(" ")],
      ["calls", h("a", { href: callsHref({ tool: tool.name }) }, "recorded calls of this tool")],
    ]),
  ].flat();
}

function argumentsPart(tool, form, run) {
  const call = button("Call", run, { class: "primary", "aria-keyshortcuts": "Control+Enter" });
  const hint = h("span", { class: "hint" }, h("kbd", {}, "Ctrl+Enter"));
  const commands = copyRow(tool, () => form.read());
  return h(
    "section",
    { class: "card", "aria-label": "Arguments" },
    form.element,
    h("div", { class: "row" }, call, hint),
    commands,
  );
}

function schemaPart(tool) {
  return h(
    "details",
    { class: "card schema", open: matchMedia("(min-width: 75rem)").matches },
    h("summary", {}, "Schema"),
    h("h3", {}, "Arguments"),
    json(tool.args_schema, "Schema of the arguments"),
    h("h3", {}, "Result"),
    json(tool.result_schema, "Schema of the result"),
  );
}
