// Fields that hold fields: objects, lists, choices between forms, and forms that are optional.

import { button, h, say } from "./dom.js";
import { ABSENT } from "./field_value.js";
import { hintOf } from "./form_fields.js";
import { fits, variantName, variantsOf } from "./schema.js";

/** Return the pointer of a member. */
function below(pointer, name) {
  return `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

function group(schema, about, ...content) {
  const hint = hintOf(schema);
  return h(
    "fieldset",
    { class: "field group", "data-pointer": about.pointer },
    h(
      "legend",
      {},
      h("span", { class: "field-name" }, about.name),
      about.isRequired && !about.isOffered ? [" ", h("span", { class: "required" }, "required")] : null,
    ),
    hint ? h("p", { class: "hint" }, hint) : null,
    content,
    h("p", { class: "problem", role: "alert" }),
  );
}

/** An object: a field for each property, the required ones first. */
export class ObjectField {
  constructor(schema, about, fieldOf) {
    const required = new Set(schema.required ?? []);
    const names = Object.keys(schema.properties ?? {}).sort((a, b) => required.has(b) - required.has(a));
    this.fields = names.map((name) => [
      name,
      fieldOf(schema.properties[name], {
        name,
        pointer: below(about.pointer, name),
        isRequired: required.has(name),
        root: about.root,
      }),
    ]);
    const elements = this.fields.map(([, field]) => field.element);
    this.element = about.isWhole ? h("div", { class: "form" }, elements) : group(schema, about, elements);
  }

  read() {
    const entries = this.fields.map(([name, field]) => [name, field.read()]);
    return Object.fromEntries(entries.filter(([, value]) => value !== ABSENT));
  }

  write(value) {
    for (const [name, field] of this.fields) {
      if (value && typeof value === "object" && Object.hasOwn(value, name)) field.write(value[name]);
      else field.clear();
    }
  }

  clear() {
    for (const [, field] of this.fields) field.clear();
  }
}

/** A list: items are added and removed. */
export class ListField {
  constructor(schema, about, fieldOf) {
    this.schema = schema;
    this.about = about;
    this.fieldOf = fieldOf;
    this.items = [];
    this.list = h("div", { class: "items" });
    const add = button(
      "Add an item",
      () => this.add().element.querySelector("input, textarea, select")?.focus(),
      { "aria-label": `Add an item to ${about.name}` },
    );
    this.element = group(schema, about, this.list, add);
  }

  add() {
    const at = this.items.length;
    const about = {
      name: `${this.about.name} ${at + 1}`,
      pointer: below(this.about.pointer, at),
      isRequired: true,
      root: this.about.root,
    };
    const field = this.fieldOf(this.schema.items ?? {}, about);
    const line = h(
      "div",
      { class: "item" },
      field.element,
      button("Remove", () => this.remove(field), { "aria-label": `Remove ${about.name}` }),
    );
    this.items.push(field);
    this.list.append(line);
    return field;
  }

  // What is left is made anew, because names and pointers of items have their numbers.
  remove(field) {
    const rest = this.items.filter((each) => each !== field).map((each) => rawOf(each));
    this.clear();
    for (const value of rest) this.add().write(value);
  }

  read() {
    if (!this.items.length && !this.about.isRequired) return ABSENT;
    return this.items.map((field) => field.read());
  }

  write(value) {
    this.clear();
    for (const item of Array.isArray(value) ? value : []) this.add().write(item);
  }

  clear() {
    this.items = [];
    this.list.replaceChildren();
  }
}

function rawOf(field) {
  try {
    return field.read();
  } catch {
    return null;
  }
}

/** A choice between forms. */
export class VariantsField {
  constructor(schema, about, fieldOf) {
    this.about = about;
    this.fieldOf = fieldOf;
    this.variants = variantsOf(schema, about.root);
    const options = this.variants.map((each, at) =>
      h("option", { value: String(at) }, variantName(each, at)),
    );
    this.select = h(
      "select",
      { "aria-label": `Kind of ${about.name}`, on: { change: () => this.pick(this.select.selectedIndex) } },
      options,
    );
    this.place = h("div", {});
    this.element = group({ description: schema.description }, about, this.select, this.place);
    this.pick(0);
  }

  pick(at) {
    const variant = this.variants[at];
    this.select.selectedIndex = at;
    if (variant.type === "null") {
      this.field = { read: () => null, write() {}, clear() {} };
      this.place.replaceChildren();
      return;
    }
    const about = { ...this.about, name: variantName(variant, at), isRequired: true };
    this.field = this.fieldOf(variant, about);
    this.place.replaceChildren(this.field.element);
  }

  read() {
    return this.field.read();
  }

  write(value) {
    const at = this.variants.findIndex((variant) => fits(value, variant));
    this.pick(Math.max(0, at));
    this.field.write(value);
  }

  clear() {
    this.pick(0);
  }
}

/** A large field that is not required: made when somebody wants it. */
export class OptionalField {
  constructor(schema, about, make) {
    this.about = about;
    this.make = make;
    this.field = null;
    this.place = h("div", {});
    this.toggle = button("", () => (this.field ? this.clear() : this.open()), { "aria-expanded": "false" });
    const hint = hintOf(schema);
    this.element = h(
      "div",
      { class: "field optional", "data-pointer": about.pointer },
      this.toggle,
      hint ? h("p", { class: "hint" }, hint) : null,
      this.place,
      h("p", { class: "problem", role: "alert" }),
    );
    this.clear();
  }

  open() {
    this.field = this.make({ ...this.about, isRequired: true, isOffered: true });
    this.place.replaceChildren(this.field.element);
    say(this.toggle, `Remove ${this.about.name}`);
    this.toggle.setAttribute("aria-expanded", "true");
  }

  read() {
    return this.field ? this.field.read() : ABSENT;
  }

  write(value) {
    this.open();
    this.field.write(value);
  }

  clear() {
    this.field = null;
    this.place.replaceChildren();
    say(this.toggle, `Add ${this.about.name}`);
    this.toggle.setAttribute("aria-expanded", "false");
  }
}
