// Upstreams: the MCP servers behind Portbook, how they are, and what of theirs waits for approval.

import { badge, button, empty, facts, h, redraw, say } from "./dom.js";
import { definitionCard } from "./definition_card.js";
import { live } from "./live.js";
import { callsHref } from "./place.js";
import { ask } from "./server.js";
import { counted } from "./times.js";

const AGAIN_MS = 5000;

/** Fill the view. */
export function showUpstreams(room) {
  const fleet = new Fleet(room);
  const look = () => fleet.look();
  live.addEventListener("upstreams", look);
  live.addEventListener("again", look);
  look();
  return {
    leave() {
      live.removeEventListener("upstreams", look);
      live.removeEventListener("again", look);
    },
  };
}

// A card stays as it is while nothing about its server has changed, and a definition while it is offered as it
// was: somebody may be reading it, or deciding on it.
class Fleet {
  constructor(room) {
    this.cards = new Map();
    this.definitions = new Map();
    this.state = h("p", { role: "status", class: "lead" });
    this.list = h("div", { class: "upstreams-list" });
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
        const [{ upstreams }, { servers }] = await Promise.all([
          ask("operator", "operator/upstreams"),
          ask("operator", "operator/pins"),
        ]);
        this.lay(upstreams, new Map(servers.map((server) => [server.name, server])));
      } catch (problem) {
        say(this.state, problem.message);
      }
    }
    this.isLooking = false;
  }

  lay(upstreams, pins) {
    say(this.state, upstreams.length ? summaryOf(upstreams) : "");
    const elements = upstreams.map((server) => this.card(server, pins.get(server.name)));
    this.cards = new Map(elements.map((each) => [each.name, each]));
    const wanted = elements.length ? elements.map(({ element }) => element) : [none()];
    const shown = [...this.list.children];
    if (wanted.length !== shown.length || wanted.some((each, at) => each !== shown[at]))
      redraw(this.list, () => this.list.replaceChildren(...wanted));
  }

  card(server, pins) {
    const { name } = server;
    const state = JSON.stringify([server, pins]);
    const known = this.cards.get(name);
    if (known?.state === state) return known;
    const definitions = (pins?.definitions ?? []).map((each) => this.definition(name, each));
    return { name, state, element: upstreamCard(server, pins, definitions) };
  }

  definition(server, definition) {
    const key = JSON.stringify([server, definition]);
    const approved = () => {
      this.definitions.delete(key);
      this.look();
    };
    if (!this.definitions.has(key)) this.definitions.set(key, definitionCard(server, definition, approved));
    return this.definitions.get(key);
  }
}

function summaryOf(upstreams) {
  const withheld = upstreams.reduce((sum, each) => sum + each.withheld, 0);
  const failed = upstreams.filter((each) => each.state === "failed").length;
  return (
    [
      counted(upstreams.length, "server"),
      failed ? `${failed} failed` : null,
      withheld ? `${counted(withheld, "definition")} withheld` : "nothing withheld",
    ]
      .filter(Boolean)
      .join(", ") + "."
  );
}

function none() {
  return empty(
    "No MCP servers",
    "A table such as [mcp.files] in portbook.toml puts a server behind Portbook.",
  );
}

function upstreamCard(server, pins, definitions) {
  return h(
    "section",
    { class: "card upstream", "aria-label": server.name },
    h("header", {}, h("h2", {}, server.name), badge(server.state), restartOf(server)),
    facts([
      ["serves", counted(server.tools, "tool")],
      ["withheld", withheldOf(server)],
      ["pinned", pins?.pinned ? `${counted(pins.pinned, "definition")} in portbook.lock` : null],
      ["revision", server.revision],
      ["transport", server.transport],
      ["restarts", String(server.restarts)],
      ["declared", server.place ? h("code", {}, server.place) : null],
      ["calls", h("a", { href: callsHref({ tool: `${server.name}.*` }) }, "recorded calls of its tools")],
    ]),
    server.last_error ? h("p", { class: "bad" }, server.last_error) : null,
    pins?.problem && !server.last_error ? h("p", { class: "dim" }, pins.problem) : null,
    definitions.length ? h("h3", {}, `Withheld: ${counted(definitions.length, "definition")}`) : null,
    definitions,
  );
}

function withheldOf({ withheld, quarantined }) {
  if (!withheld) return "nothing";
  return `${counted(withheld, "definition")}${quarantined ? `, ${quarantined} of them quarantined` : ""}`;
}

function restartOf(server) {
  const said = h("span", { role: "status", class: "dim" });
  const restart = button(
    "Restart",
    async () => {
      restart.disabled = true;
      try {
        const path = `operator/upstreams/${encodeURIComponent(server.name)}`;
        await ask("operator", path, { body: { action: "restart" } });
        say(said, "Restarting.");
        // The card is made anew when the server is up again; one that never comes up can be asked again.
        setTimeout(() => (restart.disabled = false), AGAIN_MS);
      } catch (problem) {
        say(said, problem.message);
        restart.disabled = false;
      }
    },
    { "aria-label": `Restart ${server.name}` },
  );
  return h("span", { class: "acts" }, said, restart);
}
