"""A rule's condition on one argument: a pointer and a JSON Schema for what stands there. Pure: no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.schema.engine import Validator

__all__ = ["Condition", "spoken_types"]

# What a keyword speaks of where no `type` says it: of anything else it is silent, and lets it pass.
_SPEAKS_OF: Final = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("pattern", "minLength", "maxLength", "format"), "string"),
    **dict.fromkeys(("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"), "array"),
    **dict.fromkeys(
        ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "propertyNames"),
        "object",
    ),
}


class _Missing:
    """Nothing stands at a pointer."""


_MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Condition:
    """What must stand at one place in the arguments."""

    pointer: str
    segments: tuple[str, ...]
    schema: JSONObject | bool
    validator: Validator
    types: frozenset[str] | None
    """The JSON types that the schema speaks of; None where it speaks of every one."""

    def holds(self, arguments: JSONObject, input_schema: JSONObject, *, is_cautious: bool) -> bool:
        """Return whether the condition is met; `is_cautious` for rules that stop calls.

        1. Where nothing stands there, the default that the tool's schema names is what the tool will see;
           without one there is nothing to judge.
        2. A value of a type that the condition does not speak of is met with caution: it stops a call, and
           never lets one pass.
        3. Otherwise the schema decides.
        """
        value = _at(arguments, self.segments)
        if isinstance(value, _Missing):
            value = _default(input_schema, self.segments)
            if isinstance(value, _Missing):
                return False
        if self.types is not None and not _types_of(value) & self.types:
            return is_cautious
        return self.validator.is_valid(value)


def spoken_types(schema: JSONObject | bool) -> frozenset[str] | None:
    """Return the JSON types that `schema` speaks of, or None where it speaks of every one or of who knows."""
    if isinstance(schema, bool):
        return None
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(cast("list[str]", named))
    if "const" in schema:
        return _types_of(schema["const"])
    if isinstance(schema.get("enum"), list):
        return frozenset[str]().union(*(_types_of(value) for value in cast("list[JSON]", schema["enum"])))
    spoken = frozenset(_SPEAKS_OF[keyword] for keyword in schema if keyword in _SPEAKS_OF)
    return spoken or None


def _types_of(value: JSON) -> frozenset[str]:
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"number", "integer"})
    names: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return frozenset({names.get(type(value), "null")})


def _at(value: JSON, segments: tuple[str, ...]) -> JSON | _Missing:
    for segment in segments:
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and segment.isdecimal() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return _MISSING
    return value


def _default(schema: Any, segments: tuple[str, ...]) -> JSON | _Missing:
    """Return the default that a schema's own properties name for this place."""
    for segment in segments:
        properties = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or segment not in properties:
            return _MISSING
        schema = cast("Any", properties[segment])
    if isinstance(schema, dict) and "default" in schema:
        return cast("JSON", schema["default"])
    return _MISSING
