// The console: which view is shown, and what is the same in all of them.

import { showCalls } from "./calls.js";
import { h } from "./dom.js";
import { keyPanel } from "./key_panel.js";
import { forget, hasOperatorKey, holdsAny, isReady, keys } from "./keys.js";
import { follow, live, liveState } from "./live.js";
import { placeOf } from "./place.js";
import { showPolicy } from "./policy.js";
import { showProof } from "./proof.js";
import { showShortcuts } from "./shortcuts.js";
import { showTools } from "./tools.js";
import { showUpstreams } from "./upstreams.js";
import { showWaiting } from "./waiting.js";

// A view fills its room. What it returns may have `leave`, for when it is left, and `change`, which may take
// up a different place without making the view anew.
const VIEWS = {
  waiting: { title: "Waiting", role: "operator", show: showWaiting },
  calls: { title: "Calls", role: "operator", show: showCalls },
  tools: { title: "Tools", role: "caller", show: showTools },
  upstreams: { title: "Upstreams", role: "operator", show: showUpstreams },
  policy: { title: "Policy", role: "operator", show: showPolicy },
  proof: { title: "Proof", role: "operator", show: showProof },
};
const FIRST = hasOperatorKey ? "waiting" : "tools";
const STATES = { off: "", live: "Live", paused: "Paused", lost: "Reconnecting" };

const main = document.getElementById("main");
let shown = null;
let waiting = 0;

function show(why = "") {
  const place = placeOf(location.hash);
  const name = Object.hasOwn(VIEWS, place.view) ? place.view : FIRST;
  if (shown?.name !== name) scrollTo(0, 0);
  else if (shown.change?.(place)) return;
  shown?.leave?.();
  shown = { name };
  fill(VIEWS[name], place, why);
  mark(name);
  title();
}

function fill(view, place, why) {
  const room = h("div", { class: `view ${view.title.toLowerCase()}` });
  main.replaceChildren(h("h1", {}, view.title), room);
  if (isReady(view.role)) Object.assign(shown, view.show(room, place));
  else room.append(keyPanel(view.role, why));
  // What had the focus may be gone with the view before.
  if (document.activeElement === document.body) main.focus({ preventScroll: true });
}

function mark(name) {
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// What needs a look there: servers that failed, definitions that are withheld.
function markUpstreams({ failed, withheld }) {
  const badge = document.getElementById("troubles");
  const troubles = [failed ? `${failed} failed` : null, withheld ? `${withheld} withheld` : null].filter(
    Boolean,
  );
  badge.hidden = !troubles.length;
  badge.textContent = String(failed + withheld);
  badge.setAttribute("aria-label", troubles.join(", "));
  badge.title = troubles.join(", ");
}

function title() {
  const view = VIEWS[shown.name].title;
  document.title = `${waiting ? `(${waiting}) ` : ""}${view} · Portbook`;
  const badge = document.getElementById("count");
  badge.hidden = !waiting;
  badge.textContent = String(waiting);
  badge.setAttribute("aria-label", `${waiting} waiting`);
}

keys.addEventListener("changed", ({ detail }) => {
  document.getElementById("forget").hidden = !holdsAny();
  if (!isReady("operator")) {
    waiting = 0;
    markUpstreams({ failed: 0, withheld: 0 });
  }
  if (VIEWS[shown.name].role === detail.role) {
    shown.leave?.();
    shown = { name: shown.name };
    show(detail.why);
  }
  title();
});
live.addEventListener("waiting", ({ detail }) => {
  waiting = detail.waiting;
  title();
});
live.addEventListener("upstreams", ({ detail }) => markUpstreams(detail));
live.addEventListener("state", () => {
  const line = document.getElementById("live");
  line.textContent = STATES[liveState()];
  line.className = liveState();
});
document.getElementById("forget").addEventListener("click", () => {
  forget("operator");
  forget("caller");
});
document.getElementById("help").addEventListener("click", showShortcuts);
// The address stays that of the view.
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => show());
show();
follow();
