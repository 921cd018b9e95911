// At a glance: what happens, what is behind, whether it can be proved. Each leads to its view.

import { h, svg } from "./dom.js";
import { keys } from "./keys.js";
import { live } from "./live.js";
import { callsHref, hrefOf } from "./place.js";
import { ask, withQuery } from "./server.js";
import { count, counted } from "./times.js";

const HOUR = { tool: "*", buckets: 30 };
const WIDTH = 120;
const HEIGHT = 28;
// Each look is recorded: figures follow what happens at this pace.
const PACE_MS = 60_000;

// Verifying reads the whole log: once for each time that the console is opened, and on demand under Proof.
let proof = null;
keys.addEventListener("changed", ({ detail }) => {
  if (detail.role === "operator") proof = null;
});

/** Make the glance; `leave` ends it. */
export function glance() {
  const calls = tile("Calls, last hour", callsHref({ within: "1h" }));
  const upstreams = tile("Upstreams", hrefOf("upstreams"));
  const log = tile("Log", hrefOf("proof"));
  const element = h(
    "nav",
    { class: "glance", "aria-label": "At a glance" },
    calls.element,
    upstreams.element,
    log.element,
  );
  let isStale = true;
  const look = () => {
    if (!isStale || document.hidden) return;
    isStale = false;
    fill(calls, ask("operator", withQuery("operator/figures", HOUR)), tellCalls);
  };
  const onCalls = () => (isStale = true);
  const onUpstreams = ({ detail }) => tellUpstreams(upstreams, detail);
  live.addEventListener("calls", onCalls);
  live.addEventListener("upstreams", onUpstreams);
  const pace = setInterval(look, PACE_MS);
  look();
  fill(upstreams, ask("operator", "operator/upstreams"), (each, answer) => tellUpstreams(each, sums(answer)));
  proof ??= ask("operator", "operator/proof").catch((problem) => {
    proof = null;
    throw problem;
  });
  fill(log, proof, tellProof);
  return {
    element,
    leave() {
      live.removeEventListener("calls", onCalls);
      live.removeEventListener("upstreams", onUpstreams);
      clearInterval(pace);
    },
  };
}

function tile(title, href) {
  const value = h("strong", {}, "…");
  const note = h("span", { class: "note" });
  const picture = h("span", { class: "picture" });
  const element = h("a", { class: "tile", href }, h("span", { class: "title" }, title), value, note, picture);
  return { element, value, note, picture };
}

function show(each, value, note, kind = "") {
  each.value.replaceChildren(value);
  each.note.replaceChildren(note);
  each.element.className = `tile ${kind}`.trim();
}

async function fill(each, answer, tell) {
  try {
    tell(each, await answer);
  } catch {
    show(each, "–", "not known");
  }
}

function tellCalls(each, { total, buckets }) {
  const rest = [
    total.refused ? `${count(total.refused)} refused` : null,
    total.failed ? `${count(total.failed)} failed` : null,
  ].filter(Boolean);
  show(each, count(total.calls), rest.join(", ") || (total.calls ? "all with success" : "none"));
  const most = Math.max(1, ...buckets.map((bucket) => bucket.calls));
  const width = WIDTH / buckets.length;
  const bars = buckets.map((bucket, at) => {
    const height = bucket.calls ? Math.max(2, (bucket.calls / most) * HEIGHT) : 0;
    return svg("rect", { x: at * width, y: HEIGHT - height, width: width - 1, height });
  });
  each.picture.replaceChildren(
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      bars,
    ),
  );
}

function sums({ upstreams }) {
  const of = (state) => upstreams.filter((each) => each.state === state).length;
  const withheld = upstreams.reduce((sum, each) => sum + each.withheld, 0);
  return { servers: upstreams.length, ready: of("ready"), failed: of("failed"), withheld };
}

function tellUpstreams(each, { servers, ready, failed, withheld }) {
  if (!servers) return show(each, "None", "no MCP servers");
  const troubles = [failed ? `${failed} failed` : null, withheld ? `${withheld} withheld` : null].filter(
    Boolean,
  );
  show(
    each,
    `${ready} of ${servers} ready`,
    troubles.join(", ") || "nothing withheld",
    troubles.length ? "warn" : "good",
  );
}

function tellProof(each, { whole, streams }) {
  const records = streams.reduce((sum, stream) => sum + stream.records, 0);
  if (whole) show(each, "Whole", `${counted(records, "record")} verified`, "good");
  else show(each, "Broken", "a record was changed or removed", "bad");
}
