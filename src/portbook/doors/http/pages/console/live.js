// What happens now: calls as they end and how many approvals wait. Paused while the page is hidden.

import { eventsOf } from "./event_reader.js";
import { forget, isReady, keys, turnOf } from "./keys.js";
import { Refused, send } from "./server.js";

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;

/** Tells `calls`, `waiting`, `state` and, after a gap, `again`: what was shown may be out of date. */
export const live = new EventTarget();

let running = null;
let state = "off";

/** Return the state: `off`, `live`, `paused` or `lost`. */
export function liveState() {
  return state;
}

/** Follow the server from now on, whenever there is a key and somebody looks. */
export function follow() {
  keys.addEventListener("changed", (event) => {
    if (event.detail.role !== "operator") return;
    stop("off");
    start();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop(isReady("operator") ? "paused" : "off");
    else start();
  });
  start();
}

function stop(next) {
  running?.abort();
  running = null;
  tellState(next);
}

function start() {
  if (running || document.hidden || !isReady("operator")) return;
  running = new AbortController();
  keepFollowing(running.signal);
}

async function keepFollowing(signal) {
  for (let wait = FIRST_RETRY_MS; !signal.aborted; wait = Math.min(wait * 2, LAST_RETRY_MS)) {
    try {
      await followOnce(signal, () => {
        wait = FIRST_RETRY_MS;
      });
    } catch {
      // Told by the state below; the next attempt may succeed.
    }
    if (signal.aborted) return;
    tellState("lost");
    await new Promise((go) => setTimeout(go, wait));
  }
}

async function followOnce(signal, began) {
  const turn = turnOf("operator");
  const response = await send("operator", "operator/events", { signal });
  if (response.status === 401) {
    const body = await response.json().catch(() => null);
    forget("operator", new Refused(401, body?.error).message, turn);
  }
  if (!response.ok || signal.aborted) return;
  const wasGap = state === "lost" || state === "paused";
  began();
  tellState("live");
  if (wasGap) live.dispatchEvent(new Event("again"));
  for await (const { name, data } of eventsOf(response)) {
    if (signal.aborted) return;
    live.dispatchEvent(new CustomEvent(name, { detail: data }));
  }
}

function tellState(next) {
  if (next === state) return;
  state = next;
  live.dispatchEvent(new Event("state"));
}
