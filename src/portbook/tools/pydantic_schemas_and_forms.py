"""Generates JSON Schema, and MCP's flat forms, from types, through pydantic."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Final, cast

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, SchemaError, core_schema

from portbook.canonical import NotJSON, json_bytes
from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.text.late_pattern import late_pattern

__all__ = [
    "ArgumentSchemas",
    "TypeSchemas",
    "allows_anything",
    "form_of",
    "line_of",
    "schema_and_maker",
    "schema_of",
]

# A schema has one of these, or allows anything.
_SAYS_TYPE: Final = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})


class TypeSchemas(GenerateJsonSchema):
    """Generates schemas without titles derived from names, with patterns that match in linear time."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave titles to the author."""
        return False

    def encode_default(self, dft: Any) -> Any:
        """Leave out a default that JSON cannot hold."""
        made = super().encode_default(dft)
        try:
            json_bytes(made)
        except NotJSON as error:  # NaN, for example; pydantic expects its own exception
            raise PydanticSerializationError(str(error)) from None
        return made

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Replace the pattern of decimals: pydantic's needs lookahead."""
        made = super().decimal_schema(schema)
        for form in made.get("anyOf", [made]):
            if "pattern" in form:
                form["pattern"] = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$"
        return made


class ArgumentSchemas(TypeSchemas):
    """Generates schemas of arguments: an object has no members but those that its type names.

    A model ignores unknown members by default, but its validators and its own `__init__` still see them, so
    that a value could reach the tool under a name that no rule knows. `extra="allow"` lets them through.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Close the object of a model."""
        return _closed(super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Close the object of a dataclass."""
        return _closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """Close the object of a typed dictionary."""
        return _closed(super().typed_dict_schema(schema))


def _closed(made: JsonSchemaValue) -> JsonSchemaValue:
    return {"additionalProperties": False, **made} if "properties" in made else made


# What pydantic says of a type without a schema.
_NO_SCHEMA: Final = late_pattern(
    r"Unable to generate pydantic-core schema for (?:<class ')?(.+?)(?:'>)?\. Set "
    r"|Cannot generate a JsonSchema for core_schema\.(\w+)Schema"
)


def schema_and_maker(hint: Any) -> tuple[JSONObject, Callable[[Any], Any]]:
    """Return the schema of a type, and a function that converts JSON to it or raises `ValueError`.

    Raises `TypeError` where the type has no schema.
    """
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
        schema = schema_of(lambda: adapter.json_schema(schema_generator=TypeSchemas, mode="validation"))
    except (pydantic.PydanticUserError, SchemaError) as error:
        raise TypeError(line_of(error)) from None
    return schema, adapter.validate_python


def schema_of(make: Callable[[], dict[str, Any]]) -> JSONObject:
    """Return the schema that pydantic generates, with its dialect."""
    with warnings.catch_warnings():
        # A default that JSON cannot hold is left out of the schema, and still applies.
        warnings.simplefilter("ignore", pydantic.json_schema.PydanticJsonSchemaWarning)
        return {"$schema": DIALECT, **make()}


def line_of(error: Exception) -> str:
    """Return the problem that a pydantic error states, in one line."""
    # pydantic states it in the first line; pydantic_core in the last.
    said = str(error).splitlines()[-1 if isinstance(error, SchemaError) else 0]
    if found := _NO_SCHEMA.match(said):
        name = (found[1] or found[2]).rpartition(".")[2]
        return f"{name} has no JSON Schema; use a plain type, a dataclass, a TypedDict or a pydantic model"
    return said.removeprefix("error: ")


def allows_anything(schema: Any) -> bool:
    """Return whether a schema that was generated from types, or a part of it, allows any value."""
    if not isinstance(schema, dict):
        return schema is True
    members = cast("dict[str, Any]", schema)
    if not _SAYS_TYPE & members.keys():
        return True
    parts = [*members.get("properties", {}).values(), *members.get("$defs", {}).values()]
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        parts += members.get(keyword, ())
    for keyword in ("items", "additionalProperties"):
        if keyword in members:
            parts.append(members[keyword])
    return any(map(allows_anything, parts))


# Forms from types: converts a type into MCP's flat form schema, and answers into that type.
#
# A form field of MCP is a string, a number, a boolean or a choice, never nested. A schema that pydantic
# generates is converted into that shape, or refused.

# The single field of a form for a type that is not an object.
_ONLY: Final = "value"

# The string formats that MCP's forms allow.
_FORMATS: Final = ("date", "date-time", "email", "uri")

_FLAT: Final = ("string", "integer", "number", "boolean")


@functools.cache
def form_of(hint: Any) -> tuple[JSONObject, Callable[[JSONObject], Any]]:
    """Return the form schema of a type, and a function that converts an answer into that type.

    The returned function raises `ValueError` where the type has rules that a schema cannot express.

    Raises `TypeError` where the type cannot be shown as a form.
    """
    schema, make = schema_and_maker(hint)
    definitions = cast("JSONObject", schema.get("$defs", {}))
    whole = _resolved(_without("$defs", _without("$schema", schema)), definitions)
    fields = whole.get("properties")
    if whole.get("type") != "object":
        only, is_optional = _flat(_ONLY, whole, definitions)
        form: JSONObject = {"type": "object", "properties": {_ONLY: only}}
        if is_optional:
            return form, lambda given: make(given.get(_ONLY))
        return {**form, "required": [_ONLY]}, lambda given: make(given[_ONLY])
    if not isinstance(fields, dict):
        raise TypeError("a form needs fields; ask for a model, a dataclass or a TypedDict")
    flat = {name: _flat(name, cast("JSONObject", each), definitions) for name, each in fields.items()}
    required = cast("list[str]", whole.get("required", []))
    empty: JSONObject = {name: None for name in required if flat[name][1]}  # required, but None is allowed
    form = {"type": "object", "properties": {name: each for name, (each, _) in flat.items()}}
    needed: list[JSON] = [name for name in required if name not in empty]
    return {**form, **({"required": needed} if needed else {})}, lambda given: make({**empty, **given})


def _resolved(schema: JSONObject, definitions: JSONObject) -> JSONObject:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    found = cast("JSONObject", definitions[reference.removeprefix("#/$defs/")])
    return {**found, **_without("$ref", schema)}


def _flat(name: str, schema: JSONObject, definitions: JSONObject) -> tuple[JSONObject, bool]:
    """Return a field in MCP's form schema, and whether it may be left empty."""
    schema = _resolved(schema, definitions)
    choices = cast("list[JSONObject]", schema.get("anyOf", []))
    some = [each for each in choices if each.get("type") != "null"]
    is_optional = len(some) < len(choices)
    if is_optional and len(some) == 1:
        schema = {**_resolved(some[0], definitions), **_without("anyOf", schema)}
    if schema.get("default", ...) is None:
        schema = _without("default", schema)
    if schema.get("format", "date") not in _FORMATS:
        schema = _without("format", schema)
    if "const" in schema:
        schema = {**_without("const", schema), "enum": [schema["const"]]}
    items = schema.get("items")
    is_choice = schema.get("type") == "array" and isinstance(items, dict) and "enum" in items
    if schema.get("type") not in _FLAT and not is_choice:
        raise TypeError(
            f"a form field is a string, a number, a boolean or a choice of strings; {name!r} is not"
        )
    return schema, is_optional


def _without(name: str, schema: JSONObject) -> JSONObject:
    return {key: value for key, value in schema.items() if key != name}
