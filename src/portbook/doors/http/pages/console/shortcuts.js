// Shortcuts: keys that act while nobody is typing, and the list of them.

import { button, h } from "./dom.js";

const LIST = [
  ["g then w, c, t, u, p, v", "go to Waiting, Calls, Tools, Upstreams, Policy, Proof"],
  ["/", "go to the search or the first filter"],
  ["j, k", "next and previous: a waiting call, a recorded call, a tool"],
  ["a, d", "approve, deny: then a reason if you like, and Enter"],
  ["Enter", "open what is marked"],
  ["Ctrl+Enter", "call the tool"],
  ["Esc", "close, or leave a field"],
  ["?", "this list"],
];
const PLACES = { w: "waiting", c: "calls", t: "tools", u: "upstreams", p: "policy", v: "proof" };

let isGoing = false;

function isTyping(target) {
  return target.closest?.("input, textarea, select, dialog") !== null;
}

/** Return whether a key is an Enter of its own, not the one that ends a word of an input method. */
export function isEnter(event) {
  return event.key === "Enter" && !event.isComposing;
}

/**
 * Listen for keys of a view until the returned function is called.
 *
 * `acts` has a function per key. Keys in a field, and those with Ctrl, Alt or Meta, are left to the browser.
 */
export function onKeys(acts) {
  const listen = (event) => {
    if (isLeftToBrowser(event) || isGoing) return;
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  };
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}

/** Show the list of shortcuts. */
export function showShortcuts() {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "shortcuts" },
    h("h2", { id: "shortcuts" }, "Shortcuts"),
    h(
      "dl",
      { class: "facts" },
      LIST.map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)]),
    ),
    button("Close", () => dialog.close()),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function isLeftToBrowser(event) {
  return event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.closest?.("input, textarea")) event.target.blur();
  if (isLeftToBrowser(event)) return;
  if (isGoing && PLACES[event.key]) {
    location.hash = `#/${PLACES[event.key]}`;
    event.preventDefault();
    event.stopImmediatePropagation();
    isGoing = false;
    return;
  }
  isGoing = event.key === "g";
  if (event.key === "?") showShortcuts();
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector("main [data-first]")?.focus();
  }
});
