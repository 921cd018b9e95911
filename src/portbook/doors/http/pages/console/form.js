// A form from a JSON Schema: fields that read as JSON, and take JSON.

import { say } from "./dom.js";
import { ChoiceField, ConstantField, JsonField, NumberField, TextField } from "./form_fields.js";
import { ListField, ObjectField, OptionalField, VariantsField } from "./form_groups.js";
import { kindOf, resolved, withoutNull } from "./schema.js";

/**
 * Make a field for a schema.
 *
 * `about` has `name`, `pointer`, `isRequired` and `root`, the document that references are resolved in;
 * `isOffered` is set where people chose to give what is not required. A field has `element`, `read()`,
 * `write(value)` and `clear()`.
 */
export function fieldOf(given, about) {
  let schema = resolved(given, about.root);
  if (!about.isRequired) schema = withoutNull(schema, about.root);
  const kind = kindOf(schema, about.root);
  const make = KINDS[kind];
  const isLarge = kind === "object" || kind === "variants";
  // Made when wanted: what nobody wants is not in the way, and a schema may contain itself.
  if (isLarge && !about.isRequired) return new OptionalField(schema, about, (inner) => make(schema, inner));
  return make(schema, about);
}

const KINDS = {
  constant: (schema, about) => new ConstantField(schema, about),
  choice: (schema, about) => new ChoiceField(schema, about, schema.enum),
  boolean: (schema, about) => new ChoiceField(schema, about, [false, true]),
  number: (schema, about) => new NumberField(schema, about),
  text: (schema, about) => new TextField(schema, about),
  json: (schema, about) => new JsonField(schema, about),
  list: (schema, about) => new ListField(schema, about, fieldOf),
  object: (schema, about) => new ObjectField(schema, about, fieldOf),
  variants: (schema, about) => new VariantsField(schema, about, fieldOf),
};

/** Make the form of a tool's arguments, or of a question: an object without a frame of its own. */
export function formOf(schema, root = schema) {
  return new ObjectField(
    resolved(schema, root),
    { name: "", pointer: "", isRequired: true, isWhole: true, root },
    fieldOf,
  );
}

/** Show problems at their fields, or at those around them. Return the problems that have none. */
export function showProblems(element, problems) {
  for (const line of element.querySelectorAll(".problem")) line.textContent = "";
  return problems.filter(({ pointer, message }) => {
    const named = [...element.querySelectorAll("[data-pointer]")];
    const inside = (each) =>
      pointer === each.dataset.pointer || pointer.startsWith(`${each.dataset.pointer}/`);
    const nearest = named
      .filter(inside)
      .sort((a, b) => b.dataset.pointer.length - a.dataset.pointer.length)[0];
    const line = nearest?.querySelector(":scope > .problem");
    if (line) say(line, message);
    return !line;
  });
}
