// A withheld definition of a server: what was approved and what is offered now, and the decision.

import { badge, button, h, say } from "./dom.js";
import { ask } from "./server.js";
import { valueChanges } from "./value_changes.js";

/** Make the card of a withheld definition; `onApproved` is told when it is no longer withheld. */
export function definitionCard(server, definition, onApproved) {
  const name = definition.name || "instructions of the server";
  const said = h("p", { class: "bad", role: "alert" });
  const acts = h("div", { class: "row" });
  const decide = async (decision, force) => {
    const { kind, digest } = definition;
    const body = { decision, definitions: [{ kind, name: definition.name, digest }] };
    if (force) body.force = true;
    try {
      await ask("operator", `operator/pins/${encodeURIComponent(server)}`, { body });
      if (decision === "approve") onApproved();
      else acts.replaceChildren(h("span", { role: "status" }, "Stays withheld. The decision is recorded."));
    } catch (problem) {
      say(said, problem.message);
    }
  };
  const isBlocked = definition.reaction === "block";
  // The name of a button begins with the words on it: who hears it is told what who sees it reads.
  const act = (words, go, kind = null) =>
    button(words, go, { class: kind, "aria-label": `${words}: ${name}` });
  const offer = () => {
    acts.replaceChildren(
      isBlocked
        ? act("Approve although it is blocked", confirm, "danger")
        : act("Approve", () => decide("approve", false), "primary"),
      act("Keep withheld", () => decide("keep", false)),
    );
  };
  // What looks like an attack is not let in by one slip of the hand.
  const confirm = () => {
    const sure = act("Approve it all the same", () => decide("approve", true), "danger");
    acts.replaceChildren(
      h("span", { class: "bad" }, "Agents would read this definition from now on."),
      sure,
      act("Cancel", () => {
        offer();
        acts.querySelector("button").focus();
      }),
    );
    sure.focus();
  };
  offer();
  return h(
    "article",
    { class: "definition", "aria-label": name },
    h(
      "header",
      {},
      h("h4", {}, name),
      h("span", { class: "tag" }, definition.kind),
      badge(definition.standing),
      definition.quarantined ? badge("quarantined") : null,
      isBlocked ? badge("block") : null,
    ),
    definition.changes.length
      ? h(
          "ul",
          {},
          definition.changes.map((change) =>
            h("li", {}, badge(change.grade), ` ${change.part}: ${change.note ?? ""}`),
          ),
        )
      : null,
    findingsOf(definition.findings),
    definition.parts.map(sides),
    acts,
    said,
  );
}

function findingsOf(findings) {
  if (!findings.length) return null;
  return h(
    "div",
    { class: "findings" },
    h("p", { class: "strong" }, "What the scan found"),
    h(
      "ul",
      {},
      findings.map((each) => h("li", {}, badge(each.tier), ` ${each.check} ${each.pointer}: ${each.why}`)),
    ),
  );
}

function sides(part) {
  const both = ["approved", "observed"].map((side) =>
    h(
      "div",
      {},
      h("p", { class: "dim" }, side === "approved" ? "approved" : "offered now"),
      part[side] === null
        ? h("p", { class: "dim" }, "not there")
        : h(
            "pre",
            { tabindex: "0", role: "region", "aria-label": `${part.part}, ${side}` },
            textOf(part[side]),
          ),
    ),
  );
  const changes = part.places.map(({ pointer, approved, observed }) => ({
    pointer,
    before: approved,
    after: observed,
    op: opOf(approved, observed),
  }));
  return h(
    "div",
    { class: "part" },
    h("h5", {}, part.part),
    changes.length ? valueChanges(changes, ["approved", "offered now"]) : null,
    h(
      "details",
      { open: !changes.length },
      h("summary", {}, "Whole, side by side"),
      h("div", { class: "sides" }, both),
    ),
  );
}

// What one side does not have is null there.
function opOf(approved, observed) {
  if (approved === null) return "add";
  return observed === null ? "remove" : "replace";
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
