// One waiting call: everything that a person needs to decide on it.

import { decisionRow } from "./decision.js";
import { badge, facts, h, json, paragraphs } from "./dom.js";
import { callsHref, hrefOf } from "./place.js";
import { ago, ahead } from "./times.js";
import { valueChanges } from "./value_changes.js";

/** The card of a ticket; `onDecided(card)` is told when it was decided here. */
export class TicketCard {
  constructor(ticket, onDecided) {
    this.ticket = ticket;
    this.isSettled = false;
    this.age = h("span", {});
    this.said = h("p", { class: "said", role: "status", hidden: true });
    this.row = decisionRow(ticket, (words, isBad) => {
      this.settle(words, isBad);
      onDecided(this);
    });
    const title = `ticket-${ticket.approval_id}`;
    this.box = h(
      "article",
      { class: "card ticket", tabindex: "-1", "aria-labelledby": title },
      h("header", {}, h("h2", { id: title }, ticket.tool), badge(ticket.effect), this.age),
      paragraphs(ticket.description, { class: "about" }),
      ticket.is_current === false
        ? h(
            "p",
            { class: "bad" },
            "The tool or the policy has changed since: an approval would not help. The call has to be made anew.",
          )
        : null,
      facts([
        ["caller", h("a", { href: callsHref({ caller: ticket.caller }) }, ticket.caller)],
        ["rule", [h("a", { href: hrefOf("policy") }, ticket.rule), ` (${ticket.place})`]],
        ["session", ticket.session_id],
        [
          "calls",
          h(
            "a",
            { href: callsHref({ tool: ticket.tool, caller: ticket.caller }) },
            "of this tool by this caller",
          ),
        ],
      ]),
      comparedArguments(ticket),
      this.row.element,
      this.said,
    );
  }

  /** Say that it was settled, but not here: what somebody types stays where it is, and decides nothing. */
  overtake(words) {
    const isTyping = this.row.stop();
    this.settle(words);
    this.row.element.hidden = !isTyping;
  }

  settle(words, isBad = false) {
    this.isSettled = true;
    this.box.classList.add("settled");
    this.row.element.hidden = true;
    this.said.replaceChildren(
      h("span", {}, words),
      " ",
      h("a", { href: callsHref({ approval: this.ticket.approval_id }) }, "Its calls"),
    );
    this.said.classList.toggle("bad", isBad);
    this.said.hidden = false;
    this.tellAge();
  }

  tellAge() {
    const { asked_at: asked, expires_at: expires } = this.ticket;
    this.age.textContent = this.isSettled
      ? `asked ${ago(asked)}`
      : `asked ${ago(asked)}, expires ${ahead(expires)}`;
  }
}

function comparedArguments(ticket) {
  const last = ticket.last_approved;
  const shown = [h("h3", {}, "Arguments"), json(ticket.arguments, `Arguments of ${ticket.tool}`)];
  if (!last) {
    // Of a ticket that is settled, nothing is known about those before it.
    const none = last === null ? "No earlier call of this tool by this caller was approved." : null;
    return h("div", {}, shown, none ? h("p", { class: "dim" }, none) : null);
  }
  const by = `${ago(last.decided_at)} by ${last.decided_by}${last.reason ? `: ${last.reason}` : ""}`;
  return h(
    "div",
    {},
    h("h3", {}, "Different from the last approved call ", h("span", { class: "dim" }, by)),
    ticket.changes.length
      ? valueChanges(ticket.changes)
      : h("p", {}, "Nothing: the same arguments were approved."),
    h("details", {}, h("summary", {}, "All arguments"), shown[1]),
  );
}

/** Return how a ticket was decided. */
export function settledWords({ state, decided_by: by, decided_at: at, reason }) {
  const word = state[0].toUpperCase() + state.slice(1);
  return `${word}${by ? ` by ${by}, ${ago(at)}` : ""}.${reason ? ` Reason: ${reason}.` : ""}`;
}
