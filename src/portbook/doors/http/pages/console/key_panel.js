// Asks for a key, or says what to set where no key could be right.

import { block, button, h } from "./dom.js";
import { hasOperatorKey, hold } from "./keys.js";
import { isEnter } from "./shortcuts.js";

const ABOUT = {
  operator: {
    title: "The operator's key",
    words: "It is the value of PORTBOOK_OPERATOR_KEY that the server was started with.",
    go: "Open the console",
  },
  caller: {
    title: "A caller's key",
    words: "Calls need a key here. Tools are listed and called as the caller that it belongs to.",
    go: "Show the tools",
  },
};

/** Make what asks for the key of a role; `why` is what was wrong with the one before. */
export function keyPanel(role, why) {
  if (role === "operator" && !hasOperatorKey) return noOperatorKey();
  const about = ABOUT[role];
  const field = h("input", {
    type: "password",
    id: "key",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "about-key refused-key",
  });
  const open = () => {
    const given = field.value.trim();
    field.value = "";
    if (given) hold(role, given);
    else field.focus();
  };
  field.addEventListener("keydown", (event) => {
    if (isEnter(event)) open();
  });
  queueMicrotask(() => field.focus());
  return h(
    "section",
    { class: "card key-panel", "aria-label": about.title },
    h("label", { for: "key", class: "strong" }, about.title),
    h(
      "p",
      { id: "about-key" },
      about.words,
      " This page keeps it in memory and forgets it when it is closed or reloaded.",
    ),
    h("div", { class: "row" }, field, button(about.go, open, { class: "primary" })),
    h("p", { id: "refused-key", class: "bad", role: "alert" }, why),
  );
}

function noOperatorKey() {
  return h(
    "section",
    { class: "card key-panel", "aria-label": "No operator key" },
    h("p", { class: "strong" }, "This server has no operator key"),
    h(
      "p",
      {},
      "So nobody can look at its calls or decide approvals here. Set one, and start the server again:",
    ),
    block('export PORTBOOK_OPERATOR_KEY="16 characters or more"\nportbook serve --http', "Commands"),
    h(
      "p",
      {},
      "On the machine of the server, ",
      h("code", {}, "portbook approvals"),
      " and ",
      h("code", {}, "portbook audit"),
      " do the same without a key. ",
      h("a", { href: "#/tools" }, "Tools"),
      " can be called from here as well.",
    ),
  );
}
