// The table of calls: the newest first, more on demand, and new ones on top.

import { statusOf, toolName } from "./call_filters.js";
import { badge, button, empty, h } from "./dom.js";
import { callsHref } from "./place.js";
import { clock, latency } from "./times.js";

// A page that is open all day keeps this many rows; the rest is one click away.
const MOST_LIVE = 1000;
const COLUMNS = ["Time", "Tool", "Caller", "Door", "Decision", "Status", "Latency"];

/** The table. `hrefOf(id)` is the address of a call, `loadMore` asks for older ones. */
export class CallTable {
  constructor(hrefOf, loadMore) {
    this.hrefOf = hrefOf;
    this.next = null;
    this.body = h("tbody", {});
    this.note = h("div", { role: "status" });
    this.more = button("Older calls", loadMore, { hidden: true });
    const head = h(
      "tr",
      {},
      COLUMNS.map((name) => h("th", { scope: "col" }, name)),
    );
    this.table = h(
      "table",
      { class: "calls-table" },
      h("caption", { class: "unseen" }, "Recorded calls, the newest first"),
      h("thead", {}, head),
      this.body,
    );
    this.element = h("div", { class: "calls-list" }, this.table, this.note, this.more);
  }

  begin() {
    this.isFresh = true;
    // The first look reads the whole log.
    const isEmpty = !this.body.children.length;
    this.note.replaceChildren(isEmpty ? h("p", { class: "reading" }, "Reading the records") : "");
  }

  add(rows, next, filters) {
    this.filters = filters;
    if (this.isFresh) this.body.replaceChildren();
    this.isFresh = false;
    this.next = next;
    this.more.hidden = next === null;
    this.body.append(...rows.map((row) => this.row(row)));
    this.tell();
    this.mark(this.marked);
  }

  prepend(rows) {
    if (!rows.length || this.isFresh) return;
    const known = new Set([...this.body.children].slice(0, 300).map((line) => line.dataset.id));
    for (const row of rows) {
      if (known.has(row.request_id)) continue;
      const line = this.row(row);
      line.classList.add("new");
      this.body.prepend(line);
    }
    this.trim();
    this.tell();
  }

  trim() {
    while (this.body.children.length > MOST_LIVE) {
      this.body.lastChild.remove();
      // What was removed is among the older ones again.
      this.next = this.body.lastChild.dataset.cursor;
      this.more.hidden = false;
    }
  }

  fail(words) {
    this.body.replaceChildren();
    this.more.hidden = true;
    this.table.hidden = true;
    this.note.replaceChildren(h("p", { class: "bad" }, words));
  }

  tell() {
    const isEmpty = !this.body.children.length;
    this.table.hidden = isEmpty;
    this.note.replaceChildren();
    if (isEmpty) this.note.append(noCalls(this.filters ?? {}));
  }

  row(row) {
    const status = statusOf(row);
    const cells = [
      [clock(row.at), "time"],
      [
        h("a", { href: this.hrefOf(row.request_id), class: "name" }, toolName(row.tool) || "(no tool)"),
        "tool",
      ],
      [row.caller, "caller"],
      [row.door, "door"],
      [badge(row.decision), "decision"],
      [[badge(status), row.reason ? h("span", { class: "reason" }, row.reason) : null], "status"],
      [latency(row.latency_ms), "latency"],
    ];
    const line = h(
      "tr",
      { "data-id": row.request_id, "data-cursor": `${row.at},${row.file},${row.line}`, class: status },
      cells.map(([content, name]) => h("td", { class: name }, content)),
    );
    line.addEventListener("click", (event) => {
      if (!event.target.closest("a") && !getSelection().toString())
        location.hash = this.hrefOf(row.request_id);
    });
    return line;
  }

  mark(id) {
    this.marked = id;
    for (const line of this.body.children) {
      const isIt = Boolean(id) && line.dataset.id === id;
      line.classList.toggle("marked", isIt);
    }
  }

  step(by) {
    const lines = [...this.body.children];
    if (!lines.length) return;
    const focused = lines.findIndex((line) => line.contains(document.activeElement));
    const from = focused >= 0 ? focused : lines.findIndex((line) => line.dataset.id === this.marked);
    const next = lines[Math.max(0, Math.min(lines.length - 1, from + by))];
    next.querySelector("a").focus();
    next.scrollIntoView({ block: "nearest" });
  }
}

// A filter is a whole name: who typed the beginning of one is led on.
function noCalls(filters) {
  const { tool } = filters;
  if (!Object.values(filters).some(Boolean))
    return empty("No calls yet", "Each call of a tool appears here as it ends.");
  const wider = { ...filters, tool: `*${tool}*` };
  return empty(
    "No such calls",
    "No recorded call matches. New ones appear as they end. ",
    tool && !tool.includes("*")
      ? ["Look for ", h("a", { href: callsHref(wider) }, `names with ${tool} in them`), "."]
      : null,
  );
}
