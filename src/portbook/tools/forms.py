"""Forms from types: converts a type into MCP's flat form schema, and answers into that type.

A form field of MCP is a string, a number, a boolean or a choice, never nested. A schema that pydantic
generates is converted into that shape, or refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.tools.type_schemas import schema_and_maker

__all__ = ["form_of"]

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
