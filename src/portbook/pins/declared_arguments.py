"""An input schema as a model reads it: by the arguments that it declares. Pure: no I/O.

Most input schemas are open: they allow arguments that they do not declare. To JSON Schema, a new optional
argument then allows less than before; to a model, which sends what is declared, it allows more. So all
undeclared arguments of an object are reduced to one of a fixed name, and no others are allowed:

    {"properties": {"a": A}}  becomes  {"properties": {"a": A, "undeclared argument": true}, closed}

Two schemas in this form compare as models and people understand them, and openness is still seen.
"""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.schema.references import Document, Path

__all__ = ["by_declared_arguments", "declared_properties"]

_UNDECLARED: Final = "undeclared argument"

_OBJECT_KEYWORDS: Final = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}
)
# These apply several schemas to one object: closing each would refuse what they allow together.
_TOGETHER: Final = frozenset(
    {
        "allOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "unevaluatedProperties",
        "$dynamicRef", "propertyNames",
    }
)  # fmt: skip
# These do the same only beside a keyword about objects.
_BESIDE: Final = frozenset({"anyOf", "oneOf", "$ref"})

# A reference to what closing replaces.
_CLOSED_AWAY: Final = "/additionalProperties"

_ONE: Final = frozenset({"items", "contains", "additionalProperties"})
_MANY: Final = frozenset({"anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})


class _NotReducible(Exception):
    """A schema in which declared arguments cannot be told from its other rules."""


def by_declared_arguments(schema: JSONObject) -> JSONObject | None:
    """Return a valid `schema` in the reduced form, or None where it has none."""
    try:
        return cast("JSONObject", _reduced(schema))
    except _NotReducible:
        return None


def _reduced(schema: JSON) -> JSON:
    if not isinstance(schema, dict):
        return schema
    if _CLOSED_AWAY in str(schema.get("$ref", "")):
        raise _NotReducible
    is_object = schema.get("type") == "object" or not _OBJECT_KEYWORDS.isdisjoint(schema)
    if not _TOGETHER.isdisjoint(schema) or (is_object and not _BESIDE.isdisjoint(schema)):
        raise _NotReducible
    below: JSONObject = {keyword: _below(keyword, value) for keyword, value in schema.items()}
    return _closed(below) if is_object else below


def _below(keyword: str, value: Any) -> Any:
    if keyword in _ONE:
        return _reduced(value)
    if keyword in _MANY and isinstance(value, list):
        return [_reduced(each) for each in cast("list[JSON]", value)]
    if keyword in _NAMED and isinstance(value, dict):
        return {name: _reduced(each) for name, each in cast("JSONObject", value).items()}
    return value


def _closed(schema: JSONObject) -> JSONObject:
    rest = schema.get("additionalProperties", True)
    declared = cast("JSONObject", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    properties: JSONObject = {**dict.fromkeys(required, rest), **declared}
    if _UNDECLARED in properties:  # a server must not hide an argument behind the name for all others
        raise _NotReducible
    if rest is not False:
        properties[_UNDECLARED] = rest
    return {**schema, "properties": properties, "additionalProperties": False}


def declared_properties(schema: JSONObject) -> frozenset[Path]:
    """Return the paths of all properties that a valid schema declares, at any depth."""
    return frozenset(path for path in Document(schema).nodes if path[-2:-1] == ("properties",))
