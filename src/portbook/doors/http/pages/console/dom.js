// Elements. A text from anywhere becomes a text node, never markup, and shows what would be invisible in it.

// The same for the eye as on a terminal: nothing that hides, or changes the order of what is shown.
const HIDDEN =
  /[\p{C}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0000}-\u{e0fff}]/gu;
const SVG = "http://www.w3.org/2000/svg";
const LAYS_OUT_LINES = new Set(["pre", "textarea"]);
// Browsers take seconds to lay out a megabyte.
const MOST_SHOWN = 50_000;

/** Return `text` with every invisible character escaped, except those in `kept`. */
export function visible(text, kept = " ") {
  return String(text).replace(HIDDEN, (found) => (kept.includes(found) ? found : escapedUnits(found)));
}

function escapedUnits(text) {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  return units.map((unit) => "\\u" + unit.toString(16).padStart(4, "0")).join("");
}

/**
 * Make an element.
 *
 * `about` has attributes; `on` in it has listeners, a function per event. Members that are null, undefined or
 * false are left out. A child is a node, a text, a list of children, or nothing.
 */
export function h(tag, about = {}, ...children) {
  return filled(document.createElement(tag), about, children, LAYS_OUT_LINES.has(tag) ? " \n\t" : " ");
}

/** Make an element of a picture. */
export function svg(tag, about = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), about, children, " ");
}

function filled(element, about, children, kept) {
  const { on = {}, ...attributes } = about;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "value" && element.tagName === "INPUT") {
      element.value = value; // what people would send is not changed
      continue;
    }
    element.setAttribute(name, value === true ? "" : visible(value, " \n"));
  }
  for (const [event, listen] of Object.entries(on)) element.addEventListener(event, listen);
  append(element, children, kept);
  return element;
}

function append(element, children, kept) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child, kept);
    else element.append(child instanceof Node ? child : visible(child, kept));
  }
}

/** Say something in an element, in place of what it said before. */
export function say(element, words) {
  element.textContent = visible(words, " \n");
}

/** Draw a place anew; what had the focus there, and is there again under its name, has it again. */
export function redraw(place, draw) {
  const had = place.contains(document.activeElement) ? document.activeElement : null;
  const nameOf = (element) => element.dataset.name ?? element.getAttribute("aria-label");
  draw();
  if (!had || document.activeElement === had) return;
  const named = [...place.querySelectorAll("[data-name], [aria-label]")];
  const again = had.isConnected ? had : named.find((each) => nameOf(each) === nameOf(had));
  again?.focus({ preventScroll: true });
}

/** Make a button; `about` may have a `class`. */
export function button(words, act, about = {}) {
  return h("button", { type: "button", ...about, on: { click: act } }, words);
}

/** Make a list of facts: pairs of a name and a text or a node. Pairs without a value are left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

/** Make a paragraph that keeps its lines. */
export function prose(text, about = {}) {
  const { class: name = "", ...more } = about;
  return filled(document.createElement("p"), { class: `prose ${name}`.trim(), ...more }, [text], " \n");
}

// A line that begins an item of a list; other lines of a paragraph are only as long as their author's editor.
const WRAPPED = /\s*\n(?!\s*(?:[-*•]|\d+[.)])\s)\s*/g;

/** Make the paragraphs of a description. */
export function paragraphs(text, about = {}) {
  const parts = (text ?? "").trim().split(/\n[^\S\n]*\n\s*/);
  return parts.filter(Boolean).map((part) => prose(part.replace(WRAPPED, " "), about));
}

/** Make a block of text that keeps its lines, and can be scrolled with the keyboard. Long ones open in part. */
export function block(text, label) {
  const whole = String(text);
  const shown = h(
    "pre",
    { tabindex: "0", role: "region", "aria-label": label },
    whole.length > MOST_SHOWN ? whole.slice(0, MOST_SHOWN) : whole,
  );
  if (whole.length <= MOST_SHOWN) return shown;
  const more = button(`Show all ${whole.length.toLocaleString("en")} characters`, () => {
    shown.replaceChildren(visible(whole, " \n\t"));
    more.remove();
    shown.focus();
  });
  return h("div", { class: "long" }, shown, more);
}

/** Make a block of JSON. */
export function json(value, label) {
  return block(JSON.stringify(value, null, 2), label);
}

let labels = 0;

/** Make a field with its name above it. */
export function labelled(words, input, about = {}) {
  labels += 1;
  input.id = `input-${labels}`;
  return h("div", { class: "labelled", ...about }, h("label", { for: input.id }, words), input);
}

/** Make a part that phones show when it is asked for, or where it `isOpen`; wider screens always show it. */
export function folded(words, isOpen, content) {
  const isWide = matchMedia("(min-width: 48rem)").matches;
  return h("details", { class: "folded", open: isOpen || isWide }, h("summary", {}, words), content);
}

/** Make a table; the first cell of a row is its name. Where it is too wide, it scrolls by itself. */
export function table(label, columns, rows) {
  const head = columns.map((name) => h("th", { scope: "col" }, name));
  const lines = rows.map(([name, ...cells]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      cells.map((cell) => h("td", {}, cell)),
    ),
  );
  const whole = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, lines));
  return h("div", { class: "table", role: "region", "aria-label": label, tabindex: "0" }, whole);
}

/** Make a short label with a colour of its own, such as an effect or a decision. */
export function badge(word) {
  return word ? h("span", { class: `badge ${/^[a-z]+$/.test(word) ? word : ""}` }, word) : null;
}

/** Make what stands where there is nothing to show. */
export function empty(title, ...words) {
  return h(
    "div",
    { class: "empty" },
    h("p", { class: "strong" }, title),
    words.length ? h("p", {}, words) : null,
  );
}
