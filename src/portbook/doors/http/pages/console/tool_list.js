// The list of what is served: in groups, found by typing. It scrolls by itself and draws what is in sight.

import { badge, h, say } from "./dom.js";
import { count } from "./times.js";

const MOST_OPEN = 100;
// As people count: part2 before part10.
const ORDER = new Intl.Collator("en", { numeric: true });
const LAST = ["Resources", "Prompts"];

/** The list; `hrefOf(entry)` is where an entry leads. */
export class ToolList {
  constructor(hrefOf) {
    this.hrefOf = hrefOf;
    this.entries = [];
    this.search = h("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search tools",
      "data-first": true,
      autocomplete: "off",
      spellcheck: "false",
    });
    this.search.addEventListener("input", () => this.draw());
    this.search.addEventListener("keydown", (event) => this.fromSearch(event));
    this.state = h("p", { role: "status", class: "dim" });
    this.groups = h("div", { class: "groups" });
    this.groups.addEventListener("keydown", (event) => this.onArrow(event));
    this.element = h("div", { class: "tool-list" }, this.search, this.state, this.groups);
  }

  fill(entries) {
    this.entries = entries
      .toSorted((a, b) => ORDER.compare(a.name, b.name))
      .map((entry) => ({
        entry,
        text: [entry.name, entry.title, entry.description, ...(entry.tags ?? [])].join(" ").toLowerCase(),
      }));
    this.draw();
  }

  note(words) {
    say(this.state, words);
  }

  draw() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = ({ text }) => words.every((word) => text.includes(word));
    const found = this.entries.filter(matches).map(({ entry }) => entry);
    const all = this.entries.length;
    this.state.textContent = words.length ? `${found.length} of ${count(all)}` : `${count(all)} in all`;
    const groups = Map.groupBy(found, (entry) => entry.group || "Tools");
    const ordered = [...groups].sort(([a], [b]) => LAST.indexOf(a) - LAST.indexOf(b) || ORDER.compare(a, b));
    // Many are shown as their groups first.
    const isOpen = (members) => found.length <= MOST_OPEN || members.some(({ id }) => id === this.marked);
    const parts = ordered.map(([name, members]) => this.group(name, members, isOpen(members)));
    this.groups.replaceChildren(...parts);
    this.mark(this.marked);
  }

  group(name, members, isOpen) {
    const title = h("summary", {}, name, " ", h("span", { class: "dim" }, String(members.length)));
    return h(
      "details",
      { open: isOpen },
      title,
      h(
        "ul",
        {},
        members.map((entry) => this.line(entry)),
      ),
    );
  }

  line(entry) {
    const about = (entry.description ?? "").split("\n")[0];
    return h(
      "li",
      {},
      h(
        "a",
        { href: this.hrefOf(entry), "data-id": entry.id },
        h("span", { class: "name" }, entry.name),
        badge(entry.effect),
        h("span", { class: "about" }, about),
      ),
    );
  }

  links() {
    return [...this.groups.querySelectorAll("details[open] a")];
  }

  mark(id) {
    this.marked = id;
    for (const link of this.groups.querySelectorAll("a")) {
      if (id && link.dataset.id === id) {
        link.closest("details").open = true;
        link.setAttribute("aria-current", "true");
        link.scrollIntoView({ block: "nearest" });
      } else link.removeAttribute("aria-current");
    }
  }

  step(by) {
    const first = this.groups.querySelector("details");
    if (first && !this.links().length) first.open = true;
    const links = this.links();
    if (!links.length) return;
    const focused = links.indexOf(document.activeElement);
    const from = focused >= 0 ? focused : links.findIndex((link) => link.dataset.id === this.marked);
    links[Math.max(0, Math.min(links.length - 1, from + by))].focus();
  }

  fromSearch(event) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      this.links()[0]?.focus();
    }
    if (event.key === "Enter") this.links()[0]?.click();
  }

  onArrow(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.step(by);
  }
}
