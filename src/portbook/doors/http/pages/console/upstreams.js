// Upstreams: the MCP servers behind Portbook, how they are, and what of theirs waits for approval.

import { badge, button, empty, facts, h } from "./dom.js";
import { definitionCard } from "./definition_card.js";
import { live } from "./live.js";
import { callsHref } from "./place.js";
import { ask } from "./server.js";
import { counted } from "./times.js";

// A restart takes a moment; the list is asked for again after it.
const SETTLE_MS = 1500;

/** Fill the view. */
export function showUpstreams(room) {
  const place = h("div", { class: "upstreams-list" });
  const state = h("p", { role: "status", class: "lead" });
  room.append(state, place);
  let isHere = true;
  const look = async () => {
    try {
      const [{ upstreams }, { servers }] = await Promise.all([
        ask("operator", "operator/upstreams"),
        ask("operator", "operator/pins"),
      ]);
      if (!isHere) return;
      const withheld = new Map(servers.map((server) => [server.name, server]));
      state.textContent = upstreams.length ? summaryOf(upstreams) : "";
      place.replaceChildren(
        ...(upstreams.length
          ? upstreams.map((each) => upstreamCard(each, withheld.get(each.name), look))
          : [none()]),
      );
    } catch (problem) {
      if (isHere) state.textContent = problem.message;
    }
  };
  live.addEventListener("again", look);
  look();
  return {
    leave() {
      isHere = false;
      live.removeEventListener("again", look);
    },
  };
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

function upstreamCard(server, withheld, look) {
  const said = h("span", { role: "status", class: "dim" });
  const restart = button(
    "Restart",
    async () => {
      restart.disabled = true;
      try {
        await ask("operator", `operator/upstreams/${encodeURIComponent(server.name)}`, {
          body: { action: "restart" },
        });
        said.textContent = "Restarting.";
        setTimeout(look, SETTLE_MS);
      } catch (problem) {
        said.textContent = problem.message;
        restart.disabled = false;
      }
    },
    { "aria-label": `Restart ${server.name}` },
  );
  const definitions = withheld?.definitions ?? [];
  return h(
    "section",
    { class: "card upstream", "aria-label": server.name },
    h(
      "header",
      {},
      h("h2", {}, server.name),
      badge(server.state),
      h("span", { class: "grow" }),
      said,
      restart,
    ),
    facts([
      ["last error", server.last_error ? h("span", { class: "bad" }, server.last_error) : null],
      ["revision", server.revision],
      ["transport", server.transport],
      [
        "serves",
        `${counted(server.tools, "tool")}, ${server.withheld} withheld, ${server.quarantined} quarantined`,
      ],
      ["restarts", String(server.restarts)],
      ["declared", server.place],
      ["calls", h("a", { href: callsHref({ tool: `${server.name}.*` }) }, "recorded calls of its tools")],
    ]),
    withheld?.problem ? h("p", { class: "bad" }, withheld.problem) : null,
    definitions.length ? h("h3", {}, `Withheld: ${counted(definitions.length, "definition")}`) : null,
    definitions.map((definition) => definitionCard(server.name, definition, look)),
  );
}
