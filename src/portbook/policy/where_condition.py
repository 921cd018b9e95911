"""The condition of a rule's `where`: a JSON Pointer, and a JSON Schema for the value there. Pure: no I/O.

A schema constrains some JSON types, and values of every other type pass it. So a condition knows its types,
and treats the others with caution.
"""

from __future__ import annotations

from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.policy.argument_defaults import Gap, find
from portbook.schema.engine import Validator
from portbook.text.named_tuple import NamedTuple

__all__ = ["KEYWORDS", "Condition", "UntoldTypes", "spoken_types", "types_of", "unknown_keyword"]


class Condition(NamedTuple):
    """What the value at one place in the arguments must be."""

    pointer: str
    segments: tuple[str, ...]
    schema: JSONObject | bool
    validator: Validator
    types: frozenset[str] | None
    """The JSON types that the schema constrains; None for all of them."""

    def holds(self, arguments: JSONObject, input_schema: JSONObject, *, is_cautious: bool) -> bool:
        """Return whether the condition is met; `is_cautious` for rules that stop calls.

        1. Without a value, the default in the tool's schema is what the tool will see.
        2. If the tool may fill in a default that its schema does not name, a cautious condition is met. If
           the tool has no such place, or requires a value there, the condition is not met.
        3. A value of a type that the condition does not constrain meets a cautious condition: it stops a
           call, and never allows one.
        4. Otherwise the schema decides.
        """
        value = find(arguments, input_schema, self.segments)
        if isinstance(value, Gap):
            return is_cautious and value is Gap.UNTOLD
        if self.types is not None and not types_of(value) & self.types:
            return is_cautious
        # A string is JSON in any case; a number of a default may be none.
        return self.validator.allows(value) if isinstance(value, str) else self.validator.is_valid(value)


_SPEAKS_OF: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("pattern", "minLength", "maxLength", "format", "contentEncoding"), "string"),
    **dict.fromkeys(
        (
            *("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"),
            *("minContains", "maxContains", "unevaluatedItems"),
        ),
        "array",
    ),
    **dict.fromkeys(
        (
            *("properties", "patternProperties", "additionalProperties", "propertyNames", "required"),
            *("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"),
            "unevaluatedProperties",
        ),
        "object",
    ),
}
_ONE: Final = ("not", "if", "then", "else")
_MANY: Final = ("allOf", "anyOf", "oneOf")
_ELSEWHERE: Final = ("$ref", "$dynamicRef")


KEYWORDS: Final = frozenset(
    {*_SPEAKS_OF, *_ONE, *_MANY, *_ELSEWHERE, "type", "const", "enum", "$schema", "$defs", "$comment"}
    | {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
)
_MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "$defs")
_SINGLE: Final = ("items", "contains", "additionalProperties", "propertyNames")


def unknown_keyword(schema: JSON) -> str | None:
    """Return the first keyword that JSON Schema does not have, or None.

    A schema may hold any; in a rule, an unknown keyword is a condition that is never checked.
    """
    if not isinstance(schema, dict):
        return None
    for keyword in schema:
        if keyword not in KEYWORDS:
            return keyword
    below: list[JSON] = [*_parts(schema), *cast("list[JSON]", schema.get("prefixItems", []))]
    below.extend(schema[keyword] for keyword in _SINGLE if keyword in schema)
    for keyword in _MAPS:
        below.extend(cast("JSONObject", schema.get(keyword, {})).values())
    return next((found for part in below if (found := unknown_keyword(part))), None)


class UntoldTypes(ValueError):
    """A schema whose types cannot be found out; an explicit `type` names them."""


def spoken_types(schema: JSONObject | bool) -> frozenset[str] | None:
    """Return the JSON types that `schema` constrains, or None if it treats all types alike.

    Raises `UntoldTypes` if they cannot be found out.
    """
    if isinstance(schema, bool):
        return None
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(cast("list[str]", named))
    if any(keyword in schema for keyword in _ELSEWHERE):
        raise UntoldTypes("name the type of the value with type")
    spoken = {_SPEAKS_OF[keyword] for keyword in schema if keyword in _SPEAKS_OF}
    if "const" in schema:
        spoken |= types_of(schema["const"])
    for value in cast("list[JSON]", schema.get("enum", [])):
        spoken |= types_of(value)
    for part in _parts(schema):
        spoken |= spoken_types(part) or frozenset()
    return frozenset(spoken) or None


def _parts(schema: JSONObject) -> list[JSONObject | bool]:
    parts = [schema[keyword] for keyword in _ONE if keyword in schema]
    for keyword in _MANY:
        parts.extend(cast("list[JSON]", schema.get(keyword, [])))
    return cast("list[JSONObject | bool]", parts)


def types_of(value: JSON) -> frozenset[str]:
    """Return the JSON Schema names of the type of `value`."""
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"number", "integer"})
    names: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return frozenset({names.get(type(value), "null")})
