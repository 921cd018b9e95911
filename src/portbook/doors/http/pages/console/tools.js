// Tools: what is served, found by typing, and called from a form. Resources and prompts too.

import { empty, h } from "./dom.js";
import { keys } from "./keys.js";
import { listed } from "./mcp.js";
import { offerPanel } from "./offer_panel.js";
import { hrefOf } from "./place.js";
import { ask } from "./server.js";
import { onKeys } from "./shortcuts.js";
import { toolPanel } from "./tool_panel.js";
import { ToolList } from "./tool_list.js";

// Forms and answers are there when people come back; a different caller begins anew.
const panels = new Map();
keys.addEventListener("changed", ({ detail }) => {
  if (detail.role === "caller") panels.clear();
});

/** Fill the view. */
export function showTools(room, place) {
  const view = new ToolsView(room);
  view.open(place.rest);
  view.load();
  const keysOff = onKeys({
    j: () => view.list.step(1),
    k: () => view.list.step(-1),
    Escape: () => view.back(),
  });
  return {
    change(next) {
      view.open(next.rest);
      return true;
    },
    leave: keysOff,
  };
}

class ToolsView {
  constructor(room) {
    this.list = new ToolList((entry) => hrefOf("tools", entry.id));
    this.panel = h("div", { class: "panel" });
    this.body = h("div", { class: "tools-body" }, this.list.element, this.panel);
    room.append(this.body);
  }

  async load() {
    try {
      const answer = await ask("caller", "tools?brief=1");
      this.entries = answer.tools.map((tool) => ({ ...tool, id: tool.name, kind: "tool" }));
    } catch (problem) {
      this.list.note(problem.message);
      return;
    }
    this.list.fill(this.entries);
    this.open(this.opened);
    await this.loadOffers();
    if (this.opened.includes(":")) this.open(this.opened);
  }

  async loadOffers() {
    try {
      const [resources, templates, prompts] = await Promise.all([
        listed("resources/list", "resources"),
        listed("resources/templates/list", "resourceTemplates"),
        listed("prompts/list", "prompts"),
      ]);
      const asResource = (each) => ({
        ...each,
        id: `resource:${each.uri ?? each.uriTemplate}`,
        name: each.uri ?? each.uriTemplate,
        kind: "resource",
        group: "Resources",
      });
      const asPrompt = (each) => ({ ...each, id: `prompt:${each.name}`, kind: "prompt", group: "Prompts" });
      this.entries.push(...resources.map(asResource), ...templates.map(asResource), ...prompts.map(asPrompt));
      this.list.fill(this.entries);
    } catch (problem) {
      this.list.note(problem.message);
    }
  }

  async open(id) {
    this.opened = id;
    if (!this.entries) return; // opened once it is known what is served
    this.list.mark(id);
    this.body.classList.toggle("has-panel", Boolean(id));
    if (!id) return this.panel.replaceChildren(this.entries.length ? pick() : noTools());
    let panel;
    try {
      panel = await this.panelOf(id);
    } catch (problem) {
      panel = h("p", { class: "bad", role: "alert" }, problem.message);
    }
    if (this.opened === id) this.panel.replaceChildren(this.backLink(), panel);
  }

  async panelOf(id) {
    const entry = this.entries.find((each) => each.id === id);
    if (!entry) return empty("Not served", `Nothing that you may call has the name ${id}.`);
    if (!panels.has(id)) {
      const isTool = entry.kind === "tool";
      panels.set(
        id,
        isTool ? toolPanel(await ask("caller", `tools/${encodeURIComponent(id)}`)) : offerPanel(entry),
      );
    }
    return panels.get(id);
  }

  backLink() {
    return h("a", { class: "back", href: hrefOf("tools") }, "All tools");
  }

  back() {
    if (this.opened) location.hash = hrefOf("tools");
  }
}

function noTools() {
  return empty("No tools are served", "Name a toolset, an API or an MCP server in portbook.toml.");
}

function pick() {
  return empty(
    "Pick a tool",
    "Its form and its schema appear here. ",
    h("kbd", {}, "/"),
    " searches, ",
    h("kbd", {}, "j"),
    " and ",
    h("kbd", {}, "k"),
    " walk the list.",
  );
}
