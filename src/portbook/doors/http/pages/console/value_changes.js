// Differences of two values, side by side.

import { h, table } from "./dom.js";

/** Make a table of changes, each with `pointer`, `op`, `before` and `after`; `names` are those of the sides. */
export function valueChanges(changes, names = ["was", "is"]) {
  const rows = changes.map((each) => [
    h("code", {}, each.pointer || "(all)"),
    side(each, "before", "add"),
    side(each, "after", "remove"),
  ]);
  return h("div", { class: "changes" }, table("Differences", ["where", ...names], rows));
}

function side(change, name, missing) {
  if (change.op === missing) return h("span", { class: "dim" }, "not there");
  return h("pre", { class: name }, JSON.stringify(change[name], null, 2));
}
