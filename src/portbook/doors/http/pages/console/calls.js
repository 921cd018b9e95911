// Calls: what was recorded, as it happens, with figures over time. Filters are part of the address.

import { CallTable } from "./call_table.js";
import { callDetail } from "./call_detail.js";
import { filterBar, isWanted, queryOf, suggestions } from "./call_filters.js";
import { parseExact } from "./exact_json.js";
import { figuresOf } from "./figures.js";
import { h, redraw } from "./dom.js";
import { live } from "./live.js";
import { callsHref } from "./place.js";
import { ask, withQuery } from "./server.js";
import { onKeys } from "./shortcuts.js";

// Each look is recorded: figures follow what happens at this pace.
const FIGURES_MS = 10_000;

/** Fill the view. */
export function showCalls(room, place) {
  const view = new CallsView(room);
  view.change(place);
  const onCalls = ({ detail }) => view.arrived(detail);
  const onAgain = () => view.load();
  live.addEventListener("calls", onCalls);
  live.addEventListener("again", onAgain);
  const pace = setInterval(() => view.catchUp(), FIGURES_MS);
  const keysOff = onKeys({
    j: () => view.table.step(1),
    k: () => view.table.step(-1),
    Escape: () => view.close(),
  });
  return {
    change(next) {
      view.change(next);
      return true;
    },
    leave() {
      live.removeEventListener("calls", onCalls);
      live.removeEventListener("again", onAgain);
      clearInterval(pace);
      keysOff();
    },
  };
}

class CallsView {
  constructor(room) {
    this.filters = null;
    this.isStale = false;
    this.bar = h("div", {});
    this.figures = h("div", { class: "figures" });
    this.detail = h("div", { class: "detail" });
    this.table = new CallTable(
      (id) => callsHref(this.filters, id),
      () => this.loadMore(),
    );
    this.body = h("div", { class: "calls-body" }, this.table.element, this.detail);
    this.names = h("div", { hidden: true });
    room.append(this.bar, this.names, this.figures, this.body);
  }

  change(place) {
    const isSame = this.filters && JSON.stringify(place.query) === JSON.stringify(this.filters);
    if (!isSame) {
      this.filters = place.query;
      redraw(this.bar, () => this.bar.replaceChildren(filterBar(this.filters)));
      this.load();
    }
    this.open(place.rest);
  }

  async load() {
    this.isStale = false;
    const asked = this.filters;
    this.table.begin();
    await Promise.all([this.loadRows(asked, null), this.loadFigures(asked)]);
  }

  async loadRows(asked, before) {
    try {
      const answer = await ask("operator", withQuery("operator/calls", { ...queryOf(asked), before }));
      if (asked !== this.filters) return;
      this.table.add(answer.calls, answer.next, asked);
    } catch (problem) {
      if (asked === this.filters) this.table.fail(problem.message);
    }
  }

  loadMore() {
    return this.loadRows(this.filters, this.table.next);
  }

  async loadFigures(asked) {
    try {
      const answer = await ask(
        "operator",
        withQuery("operator/figures", { buckets: 60, ...queryOf(asked, true) }),
      );
      if (asked !== this.filters) return;
      this.figures.replaceChildren(figuresOf(answer, asked));
      this.names.replaceChildren(...suggestions(answer));
    } catch {
      // The table tells what is wrong: it asked with the same filters.
    }
  }

  arrived({ calls, missed }) {
    const wanted = calls.filter((row) => isWanted(row, this.filters));
    if (missed) this.load();
    else this.table.prepend(wanted);
    this.isStale ||= wanted.length > 0;
  }

  catchUp() {
    if (!this.isStale || document.hidden) return;
    this.isStale = false;
    this.loadFigures(this.filters);
  }

  async open(id) {
    this.opened = id;
    this.table.mark(id);
    this.body.classList.toggle("has-detail", Boolean(id));
    if (!id) return this.detail.replaceChildren();
    const close = h("a", { href: callsHref(this.filters), class: "close" }, "Close");
    try {
      const answer = await ask("operator", `operator/calls/${encodeURIComponent(id)}`, { parse: parseExact });
      const ticket = await ticketOf(answer);
      if (this.opened === id) this.detail.replaceChildren(close, callDetail(answer, ticket));
    } catch (problem) {
      if (this.opened === id)
        this.detail.replaceChildren(close, h("p", { class: "bad", role: "alert" }, problem.message));
    }
  }

  close() {
    if (this.opened) location.hash = callsHref(this.filters);
  }
}

// An approval is kept for a time: an old call may have none any more.
async function ticketOf(answer) {
  const id = answer.execution[0]?.record.approval_id;
  if (!id) return null;
  return ask("operator", `approvals/${encodeURIComponent(id)}`, { parse: parseExact }).catch(() => null);
}
