// One decision: two keys, a reason if people like, and what became of it.

import { button, h, say } from "./dom.js";
import { ask, NoAnswer } from "./server.js";
import { isEnter } from "./shortcuts.js";

const WORDS = {
  approve: { verb: "Approve", kind: "primary", done: "Approved: the caller may make this call once." },
  deny: { verb: "Deny", kind: "danger", done: "Denied." },
};
const MAX_REASON = 1000;
// The server knows of no such ticket, or it is settled: nothing is left to decide.
const TOO_LATE = new Set([404, 409]);

/**
 * Make the buttons of a ticket; `onSettled` is told how a decision ended.
 *
 * `ask` asks for the reason of a decision. `stop` ends it all and returns whether a reason was being typed.
 */
export function decisionRow(ticket, onSettled) {
  const element = h("div", { class: "decision" });
  const mayApprove = ticket.is_current !== false; // else the approval would not cover the call any more
  const problem = h("p", { class: "bad", role: "alert" });
  let isStopped = false;

  const offer = () => {
    element.replaceChildren(
      h(
        "div",
        { class: "row" },
        mayApprove
          ? button("Approve", () => open("approve"), { class: "primary", "aria-keyshortcuts": "a" })
          : null,
        button("Deny", () => open("deny"), { class: "danger", "aria-keyshortcuts": "d" }),
        h(
          "span",
          { class: "hint" },
          mayApprove ? [h("kbd", {}, "a"), " approves, "] : null,
          h("kbd", {}, "d"),
          " denies",
        ),
      ),
      problem,
    );
  };

  const open = (decision) => {
    if (isStopped || element.hidden || (decision === "approve" && !mayApprove)) return;
    problem.textContent = "";
    const { verb, kind } = WORDS[decision];
    const field = h("input", {
      maxlength: String(MAX_REASON),
      autocomplete: "off",
      "aria-label": `Reason to ${decision} ${ticket.tool}`,
      placeholder: "Reason, if you like",
    });
    const go = button(verb, () => decide(decision, field.value.trim(), go), { class: kind });
    field.addEventListener("keydown", (event) => {
      if (isEnter(event)) go.click();
      if (event.key === "Escape" && !isStopped) close();
    });
    const close = () => {
      offer();
      element.closest("article")?.focus();
    };
    element.replaceChildren(
      h(
        "div",
        { class: "row" },
        field,
        go,
        button("Cancel", close),
        h("span", { class: "hint" }, h("kbd", {}, "Enter"), " decides"),
      ),
      problem,
    );
    field.focus();
  };

  const decide = async (decision, reason, go) => {
    go.disabled = true;
    try {
      const body = reason ? { decision, reason } : { decision };
      await ask("operator", `approvals/${encodeURIComponent(ticket.approval_id)}`, { body });
      onSettled(WORDS[decision].done);
    } catch (failure) {
      if (TOO_LATE.has(failure.status)) onSettled(failure.message, true);
      else {
        const isUnsure = failure instanceof NoAnswer;
        say(problem, isUnsure ? "No answer: nothing is known to be decided. Look again." : failure.message);
        go.disabled = false;
      }
    }
  };

  // The field keeps the focus, so that keys which are on their way act on nothing else.
  const stop = () => {
    isStopped = true;
    const field = element.querySelector("input");
    if (field) field.readOnly = true;
    for (const each of element.querySelectorAll("button")) each.disabled = true;
    return field !== null;
  };

  offer();
  return { element, ask: open, stop };
}
