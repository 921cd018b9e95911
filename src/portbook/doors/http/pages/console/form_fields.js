// Fields of one value each.

import { h } from "./dom.js";
import { isChanged, isNumber, parseExact } from "./exact_json.js";
import { ABSENT, FieldProblem } from "./field_value.js";

let made = 0;

/** Make the frame of a field: its name, what it is for, and what is wrong with it. */
export function framed(schema, about, input, more = null) {
  made += 1;
  const id = `field-${made}`;
  input.id = id;
  const hint = hintOf(schema);
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  if (about.isRequired) input.setAttribute("aria-required", "true");
  return h(
    "div",
    { class: "field", "data-pointer": about.pointer },
    h(
      "label",
      { for: id },
      h("span", { class: "field-name" }, about.name),
      about.isRequired && !about.isOffered ? [" ", h("span", { class: "required" }, "required")] : null,
    ),
    hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null,
    input,
    more,
    h("p", { class: "problem", role: "alert" }),
  );
}

/** Return what a schema says to people about a value. */
export function hintOf(schema) {
  const bounds = [
    schema.format,
    schema.minimum !== undefined ? `at least ${schema.minimum}` : null,
    schema.maximum !== undefined ? `at most ${schema.maximum}` : null,
    schema.maxLength !== undefined ? `at most ${schema.maxLength} characters` : null,
    schema.pattern ? `pattern ${schema.pattern}` : null,
  ].filter(Boolean);
  const about = String(schema.description ?? "")
    .replace(/[ \t\n]+/g, " ")
    .trim();
  const parts = [about, bounds.join(", ")].filter(Boolean);
  return parts.join(" · ");
}

function placeholderOf(schema) {
  if (![undefined, null, ""].includes(schema.default)) return `default: ${textOf(schema.default)}`;
  return schema.examples?.length ? `such as ${textOf(schema.examples[0])}` : null;
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

class TypedField {
  constructor(schema, about, input) {
    this.about = about;
    this.input = input;
    this.element = framed(schema, about, input);
  }

  clear() {
    this.input.value = "";
  }
}

/** A text. Nothing typed is nothing given, unless it is required. */
export class TextField extends TypedField {
  constructor(schema, about) {
    super(
      schema,
      about,
      h("textarea", { rows: "1", spellcheck: "false", placeholder: placeholderOf(schema) }),
    );
  }

  read() {
    return this.input.value === "" && !this.about.isRequired ? ABSENT : this.input.value;
  }

  write(value) {
    this.input.value = textOf(value);
  }
}

function numberIn(text) {
  try {
    const value = parseExact(text);
    return isNumber(value) ? value : null;
  } catch {
    return null;
  }
}

/** A number. */
export class NumberField extends TypedField {
  constructor(schema, about) {
    super(
      schema,
      about,
      h("input", { inputmode: "decimal", autocomplete: "off", placeholder: placeholderOf(schema) }),
    );
  }

  read() {
    const text = this.input.value.trim();
    if (text === "" && !this.about.isRequired) return ABSENT;
    const number = numberIn(text);
    if (number === null) throw new FieldProblem(this.about.pointer, "Type a number.");
    if (typeof number === "number" && isChanged(text, number))
      throw new FieldProblem(this.about.pointer, "This browser would round it: use a newer one.");
    return number;
  }

  write(value) {
    this.input.value = textOf(value);
  }
}

/** Any JSON: the way out where no other field fits. */
export class JsonField extends TypedField {
  constructor(schema, about) {
    super(
      schema,
      about,
      h("textarea", {
        rows: "2",
        spellcheck: "false",
        class: "code",
        placeholder: placeholderOf(schema) ?? "JSON",
      }),
    );
  }

  read() {
    const text = this.input.value.trim();
    if (text === "" && !this.about.isRequired) return ABSENT;
    try {
      return parseExact(text);
    } catch {
      throw new FieldProblem(this.about.pointer, "Type JSON: a text needs quotes.");
    }
  }

  write(value) {
    this.input.value = JSON.stringify(value, null, 2);
  }
}

/** One of a few values. */
export class ChoiceField extends TypedField {
  constructor(schema, about, values) {
    const none = about.isRequired ? [] : [h("option", {}, placeholderOf(schema) ?? "not given")];
    super(
      schema,
      about,
      h(
        "select",
        {},
        none,
        values.map((value) => h("option", {}, textOf(value))),
      ),
    );
    this.values = about.isRequired ? values : [ABSENT, ...values];
  }

  read() {
    return this.values[this.input.selectedIndex];
  }

  write(value) {
    const text = JSON.stringify(value);
    this.input.selectedIndex = this.values.findIndex((each) => JSON.stringify(each) === text);
  }

  clear() {
    this.input.selectedIndex = 0;
  }
}

/** A value that can only be one. */
export class ConstantField {
  constructor(schema, about) {
    this.value = schema.const;
    this.element = h(
      "div",
      { class: "field", "data-pointer": about.pointer },
      h("span", { class: "field-name" }, about.name),
      " ",
      h("code", {}, textOf(schema.const)),
      h("p", { class: "problem", role: "alert" }),
    );
  }

  read() {
    return this.value;
  }

  write() {}

  clear() {}
}
