// Waiting: the calls that need a person, and the decision on each.

import { empty, h, say } from "./dom.js";
import { parseExact } from "./exact_json.js";
import { glance } from "./glance.js";
import { live } from "./live.js";
import { callsHref } from "./place.js";
import { ask, withQuery } from "./server.js";
import { onKeys } from "./shortcuts.js";
import { settledWords, TicketCard } from "./waiting_call_card.js";
import { counted } from "./times.js";

const AGE_MS = 5000;
// What people approve is what the call has, to the last digit.
const EXACT = { parse: parseExact };

/** Fill the view. */
export function showWaiting(room, place) {
  const around = glance();
  room.append(around.element);
  const desk = new Desk(room, place.rest);
  const look = () => desk.look();
  // One that is decided just when another is asked for leaves their number as it was.
  const onCalls = ({ detail }) => {
    if (detail.calls.some((row) => row.approval || row.door?.startsWith("http /approvals"))) look();
  };
  live.addEventListener("calls", onCalls);
  live.addEventListener("waiting", look);
  live.addEventListener("again", look);
  const ages = setInterval(() => desk.tellAges(), AGE_MS);
  const keysOff = onKeys({
    j: () => desk.step(1),
    k: () => desk.step(-1),
    a: () => desk.marked?.row.ask("approve"),
    d: () => desk.marked?.row.ask("deny"),
  });
  desk.look();
  return {
    leave() {
      live.removeEventListener("calls", onCalls);
      live.removeEventListener("waiting", look);
      live.removeEventListener("again", look);
      clearInterval(ages);
      around.leave();
      keysOff();
    },
  };
}

// What is on the desk stays where it is while people decide, so that nobody clicks on what has just moved.
class Desk {
  constructor(room, wanted) {
    this.cards = new Map();
    this.wanted = wanted;
    this.marked = null;
    this.more = 0;
    this.state = h("p", { role: "status", class: "lead" });
    this.list = h("div", { class: "tickets" });
    room.append(this.state, this.list);
  }

  // Each look is recorded: those that are due while one is under way are one.
  async look() {
    this.isDue = true;
    if (this.isLooking) return;
    this.isLooking = true;
    while (this.isDue && !document.hidden) {
      this.isDue = false;
      try {
        await this.lay(await ask("operator", "operator/waiting", EXACT));
      } catch (problem) {
        say(this.state, problem.message);
      }
    }
    this.isLooking = false;
  }

  async lay(answer) {
    const waiting = new Map(answer.waiting.map((each) => [each.approval_id, each]));
    const beyond = answer.more ? await this.beyond(waiting) : new Map();
    for (const [id, ticket] of beyond) waiting.set(id, ticket);
    for (const [id, card] of this.cards) {
      if (!card.isSettled && !waiting.has(id))
        card.overtake("No longer waits: decided elsewhere, or expired.");
    }
    for (const [id, ticket] of waiting) if (!this.cards.has(id)) this.add(id, ticket);
    this.more = answer.more - beyond.size;
    await this.addWanted();
    this.tell();
    this.tellAges();
    // A mark that moved by itself would put the next key on a call that nobody looked at.
    if (!this.marked) this.step(1, false);
  }

  // The list has the oldest: a card that is not in it may wait all the same.
  async beyond(listed) {
    const absent = [...this.cards].filter(([id, card]) => !card.isSettled && !listed.has(id));
    const found = await Promise.all(absent.map(([id]) => waitingTicket(id)));
    return new Map(found.filter(Boolean).map((ticket) => [ticket.approval_id, ticket]));
  }

  // Links lead to one ticket, which may be decided by now, or not be among the oldest.
  async addWanted() {
    const wanted = this.wanted;
    this.wanted = "";
    if (!wanted) return;
    if (!this.cards.has(wanted)) {
      try {
        await this.fetch(wanted);
      } catch (problem) {
        this.list.prepend(h("p", { class: "bad" }, problem.message));
        return;
      }
    }
    this.mark(this.cards.get(wanted));
  }

  async fetch(id) {
    const waiting = await waitingTicket(id);
    if (waiting) {
      this.add(id, waiting);
      this.more = Math.max(0, this.more - 1);
    } else {
      const ticket = await ask("operator", `approvals/${encodeURIComponent(id)}`, EXACT);
      this.add(id, ticket).settle(settledWords(ticket));
    }
  }

  add(id, ticket) {
    const card = new TicketCard(ticket, (decided) => {
      this.tell();
      if (decided === this.marked) this.step(1);
    });
    this.cards.set(id, card);
    this.list.querySelector(".empty")?.remove();
    this.list.append(card.box);
    card.box.addEventListener("focusin", () => this.mark(card, false));
    return card;
  }

  step(by, mayFocus = true) {
    const all = [...this.cards.values()];
    const at = all.indexOf(this.marked);
    const isOpen = (card) => !card.isSettled;
    const next =
      by > 0
        ? (all.slice(at + 1).find(isOpen) ?? all.findLast(isOpen))
        : (all.slice(0, Math.max(0, at)).findLast(isOpen) ?? all.find(isOpen));
    this.mark(next ?? null, mayFocus);
  }

  mark(card, mayFocus = true) {
    this.marked?.box.classList.remove("marked");
    this.marked = card;
    card?.box.classList.add("marked");
    if (card && mayFocus) {
      card.box.focus({ preventScroll: true });
      card.box.scrollIntoView({ block: "nearest" });
    }
  }

  tell() {
    const open = [...this.cards.values()].filter((card) => !card.isSettled).length;
    const all = open + this.more;
    const told = `${counted(all, "call")} ${all === 1 ? "waits" : "wait"} for a decision.`;
    const rest = this.more ? ` ${open} of them are shown.` : "";
    this.state.textContent = all ? told + rest : this.cards.size ? "Nothing else waits." : "";
    if (!this.cards.size && !this.list.children.length) this.list.append(nothing());
  }

  tellAges() {
    for (const card of this.cards.values()) card.tellAge();
  }
}

async function waitingTicket(id) {
  const { waiting } = await ask("operator", withQuery("operator/waiting", { id }), EXACT);
  return waiting[0] ?? null;
}

function nothing() {
  return empty(
    "Nothing waits",
    "A call that a rule asks about appears here as soon as it is made. ",
    h("a", { href: callsHref({ decision: "ask" }) }, "Calls that were asked about"),
    ".",
  );
}
