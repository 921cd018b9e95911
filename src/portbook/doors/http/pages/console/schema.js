// What a JSON Schema asks people for. No elements here: the form is made in form.js.

// A reference can lead to a reference, but not for ever.
const MOST_STEPS = 20;

/** Return a schema with its references followed; keywords beside a reference win. */
export function resolved(schema, root) {
  let found = schema === true ? {} : schema;
  for (let step = 0; step < MOST_STEPS && typeof found?.$ref === "string"; step += 1) {
    const { $ref: pointer, ...beside } = found;
    found = { ...(atPointer(root, pointer) ?? {}), ...beside };
  }
  if (Array.isArray(found?.allOf)) {
    const { allOf, ...beside } = found;
    found = allOf.map((part) => resolved(part, root)).reduce(joined, beside);
  }
  return found && typeof found === "object" ? found : {};
}

function atPointer(root, pointer) {
  if (!pointer.startsWith("#")) return null;
  const steps = pointer.slice(1).split("/").slice(1);
  return steps.reduce(
    (at, step) => at?.[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")],
    root,
  );
}

function joined(left, right) {
  return {
    ...right,
    ...left,
    properties: { ...right.properties, ...left.properties },
    required: [...(right.required ?? []), ...(left.required ?? [])],
  };
}

/** Return the kind of field that a resolved schema needs. */
export function kindOf(schema, root) {
  if ("const" in schema) return "constant";
  if (Array.isArray(schema.enum)) return "choice";
  if (variantsOf(schema, root).length > 1) return "variants";
  switch (typeOf(schema)) {
    case "string":
      return "text";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return "list";
    case "object":
      return Object.keys(schema.properties ?? {}).length ? "object" : "json";
    default:
      return "json";
  }
}

function typeOf(schema) {
  if (typeof schema.type === "string") return schema.type;
  if (schema.properties) return "object";
  return schema.items ? "array" : null;
}

/** Return the schemas that a value can be of, one of them; a list of types counts as such. */
export function variantsOf(schema, root) {
  const given = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(given)) return given.map((each) => resolved(each, root));
  if (!Array.isArray(schema.type)) return [];
  return schema.type.map((type) => ({ ...schema, type }));
}

/** Return a schema without the possibility of null, if nothing else is lost by it. */
export function withoutNull(schema, root) {
  const rest = variantsOf(schema, root).filter((each) => each.type !== "null");
  if (rest.length !== 1) return schema;
  const { oneOf: _one, anyOf: _any, type: _type, ...beside } = schema;
  return { ...beside, ...rest[0], description: schema.description ?? rest[0].description };
}

/** Return what people call a variant. */
export function variantName(schema, at) {
  const constant = Object.values(schema.properties ?? {}).find((each) => "const" in (each ?? {}));
  return schema.title ?? (constant ? String(constant.const) : null) ?? typeOf(schema) ?? `choice ${at + 1}`;
}

/** Return whether a value looks like one of a variant: enough to pick a field for it. */
export function fits(value, schema) {
  if (Object.hasOwn(schema, "const")) return schema.const === value;
  const type = typeOf(schema);
  if (value === null) return type === "null";
  if (Array.isArray(value)) return type === "array";
  if (JSON.isRawJSON?.(value)) return type === "number" || type === "integer";
  if (typeof value === "object") {
    const names = Object.keys(schema.properties ?? {});
    const isConstant = (name) =>
      !("const" in (schema.properties[name] ?? {})) ||
      !Object.hasOwn(value, name) ||
      schema.properties[name].const === value[name];
    return (
      type === "object" &&
      names.every(isConstant) &&
      Object.keys(value).every((name) => !names.length || names.includes(name))
    );
  }
  if (typeof value === "number") return type === "number" || (type === "integer" && Number.isInteger(value));
  return type === typeof value;
}
