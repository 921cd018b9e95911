// The operator's key and the caller's key: in this module's memory alone, gone when the page is.

const held = { operator: null, caller: null };
// How often the key of a role has changed.
const turns = { operator: 0, caller: 0 };
const facts = document.documentElement.dataset;

export const callsNeedKey = facts.callsNeedKey === "yes";
export const hasOperatorKey = facts.hasOperatorKey === "yes";

/** Tells `changed` when a key is given or forgotten. */
export const keys = new EventTarget();

/** Return whether a role has its key, or needs none. */
export function isReady(role) {
  return held[role] !== null || (role === "caller" && !callsNeedKey);
}

/** Return whether any key is held. */
export function holdsAny() {
  return held.operator !== null || held.caller !== null;
}

/** Return what names the key that is held now, for `forget`. */
export function turnOf(role) {
  return turns[role];
}

/** Hold a key for a role. */
export function hold(role, key) {
  held[role] = key;
  turns[role] += 1;
  keys.dispatchEvent(new CustomEvent("changed", { detail: { role } }));
}

/**
 * Forget the key of a role; `why` is what the server said of it.
 *
 * What it said of the key of a `turn` before is not about the key that is held by now.
 */
export function forget(role, why = "", turn = turns[role]) {
  if (turn !== turns[role]) return;
  held[role] = null;
  turns[role] += 1;
  keys.dispatchEvent(new CustomEvent("changed", { detail: { role, why } }));
}

/** Return the header that carries the key of a role, if there is one. */
export function credentials(role) {
  if (held[role] === null) return {};
  // A header holds bytes, and a key may hold any characters.
  const bytes = new TextEncoder().encode(held[role]);
  return { authorization: "Bearer " + String.fromCharCode(...bytes) };
}

// A page that the browser keeps, to show it again, keeps no key and nothing that was shown with one.
addEventListener("pagehide", () => {
  for (const role of Object.keys(held)) if (held[role] !== null) forget(role);
});
