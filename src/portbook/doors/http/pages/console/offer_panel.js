// A resource or a prompt: what it needs, and what it gives.

import { button, h, paragraphs } from "./dom.js";
import { FieldProblem } from "./field_value.js";
import { formOf, showProblems } from "./form.js";
import { request } from "./mcp.js";
import { contentOf, shownContent } from "./running_call.js";

const VARIABLE = /\{[?&#+./;]?([^}]*)\}/g;

/** Make the panel of a resource or a prompt, as MCP lists it. */
export function offerPanel(offer) {
  const form = formOf(schemaOf(offer));
  const answer = h("section", { class: "answers", "aria-label": "Answers" });
  const verb = offer.kind === "prompt" ? "Get the prompt" : "Read the resource";
  const run = async () => {
    showProblems(form.element, []);
    let given;
    try {
      given = form.read();
    } catch (problem) {
      if (problem instanceof FieldProblem) showProblems(form.element, [problem]);
      return;
    }
    try {
      answer.replaceChildren(...shown(await request(...messageOf(offer, given))));
    } catch (problem) {
      answer.replaceChildren(h("p", { class: "bad", role: "alert" }, problem.message));
    }
  };
  const panel = h(
    "article",
    { class: "tool", "aria-label": offer.name },
    h("header", {}, h("h2", {}, offer.name), h("span", { class: "tag" }, offer.kind)),
    paragraphs(offer.description, { class: "about" }),
    form.element,
    h(
      "div",
      { class: "row" },
      button(verb, run, { class: "primary" }),
      h("span", { class: "hint" }, h("kbd", {}, "Ctrl+Enter")),
    ),
    answer,
  );
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  return panel;
}

function schemaOf(offer) {
  const given =
    offer.kind === "prompt"
      ? (offer.arguments ?? [])
      : variablesOf(offer.uriTemplate ?? "").map((name) => ({ name, required: true }));
  const properties = Object.fromEntries(
    given.map((each) => [each.name, { type: "string", description: each.description }]),
  );
  return {
    type: "object",
    properties,
    required: given.filter((each) => each.required).map((each) => each.name),
  };
}

function variablesOf(template) {
  return [...template.matchAll(VARIABLE)].flatMap(([, names]) =>
    names.split(",").map((name) => name.replace(/[*:].*$/, "")),
  );
}

function messageOf(offer, given) {
  if (offer.kind === "prompt") return ["prompts/get", { name: offer.name, arguments: given }];
  return ["resources/read", { uri: offer.uri ?? expanded(offer.uriTemplate, given) }];
}

// Level 1 and 2 of RFC 6570, and queries: all that people fill in by hand.
function expanded(template, given) {
  return template.replace(/\{([?&#+./;]?)([^}]*)\}/g, (_, operator, names) => {
    const parts = names.split(",").map((name) => [name.replace(/[*:].*$/, ""), name]);
    if (operator === "?" || operator === "&")
      return operator + parts.map(([name]) => `${name}=${encodeURIComponent(given[name] ?? "")}`).join("&");
    const values = parts.map(([name]) =>
      operator === "+" || operator === "#"
        ? encodeURI(given[name] ?? "")
        : encodeURIComponent(given[name] ?? ""),
    );
    return (
      (operator === "+" ? "" : operator) + values.join(operator === "/" || operator === "." ? operator : ",")
    );
  });
}

function shown({ result }) {
  if (!result.messages) return contentOf(result);
  return result.messages.map((message) =>
    h("div", { class: "message" }, h("p", { class: "strong" }, message.role), shownContent(message.content)),
  );
}
