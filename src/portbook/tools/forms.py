"""A form for a person from a type: the flat schema that MCP has for it, and what was filled in as that type.

MCP's forms have texts, numbers, yes or no, and choices: nothing in anything else. What pydantic says of a
type is brought into that shape, or refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.tools.type_schemas import schema_and_maker

__all__ = ["form_of"]

# The field of a form for what is no object.
_ONLY: Final = "value"

# What MCP's forms know of a text.
_FORMATS: Final = ("date", "date-time", "email", "uri")

_FLAT: Final = ("string", "integer", "number", "boolean")


@functools.cache
def form_of(hint: Any) -> tuple[JSONObject, Callable[[JSONObject], Any]]:
    """Return the schema of a form for a type, and what makes one of the type of what was filled in.

    What is returned raises `ValueError` where the type has rules that a schema cannot tell.

    Raises `TypeError` where the type is no form.
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
    empty: JSONObject = {name: None for name in required if flat[name][1]}  # what nobody has to fill in
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
    """Return a field as MCP's forms have it, and whether it may be left empty."""
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
            f"a form has texts, numbers, yes or no, and choices of texts; {name!r} is none of these"
        )
    return schema, is_optional


def _without(name: str, schema: JSONObject) -> JSONObject:
    return {key: value for key, value in schema.items() if key != name}
