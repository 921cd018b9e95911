"""The condition of a rule's `where`: a JSON Pointer, and a JSON Schema for the value there. Pure: no I/O.

A schema constrains some JSON types, and values of every other type pass it. So a condition knows its types,
and treats the others with caution.

The value is the one that the tool will see. A caller may leave out an argument, or a part of one. The tool
then sees the default in its schema: of the argument itself, or of the object that holds it. Schemas made from
Python types keep the parts of a model behind references; references within the document are followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, IntEnum
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.schema.engine import Validator
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "KEYWORDS",
    "Condition",
    "Gap",
    "Reach",
    "UntoldTypes",
    "declared_names",
    "find",
    "reach",
    "spoken_types",
    "unknown_keyword",
]


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


# The value that a tool will see at a place in its arguments, defaults included.

# How many references and compositions are followed for one place; deeper ones are not.
_MAX_NODES: Final = 64


class Gap(Enum):
    """Why there is no value at a place."""

    UNTOLD = "the tool may fill in a default that its schema does not name"
    EMPTY = "the tool has no such place, or refuses a call without it"


class Reach(IntEnum):
    """Whether a tool can be given a value at a place, by its schema."""

    CLOSED = 0
    """The schema allows no value there."""
    OPEN = 1
    """The schema allows a value there, and does not describe it."""
    DECLARED = 2


def find(arguments: JSONObject, schema: JSONObject, segments: tuple[str, ...]) -> JSON | Gap:
    """Return the value at `segments`, or its default, or why there is neither."""
    value: JSON | Gap = arguments
    for segment in segments:
        value = _step(value, segment)
        if isinstance(value, Gap):
            return _find_default(arguments, schema, segments)
    return value


def _find_default(arguments: JSONObject, schema: JSONObject, segments: tuple[str, ...]) -> JSON | Gap:
    """Return the value that a tool sees where its caller gives none, by its schema."""
    value: JSON | Gap = arguments
    nodes = [*_nodes(schema, schema)]
    for segment in segments:
        is_required = any(segment in _texts(node.get("required")) for node in nodes)
        children = [child for node in nodes if (child := _property(node, segment)) is not None]
        nodes = [node for child in children for node in _nodes(child, schema)]
        if not isinstance(value, dict | list | Gap):
            return Gap.UNTOLD  # a part of a value that has no parts: unknown what the tool makes of it
        value = _step(value, segment)
        if isinstance(value, Gap):
            value = _default(nodes, is_known=bool(children), is_required=is_required)
    return value


def reach(schema: JSON, segments: tuple[str, ...]) -> Reach:
    """Return whether a document that `schema` allows can have a value at `segments`.

    A closed place is certain; where references and compositions are too many to follow, a place is open.
    """
    return _reach(schema, schema if isinstance(schema, dict) else {}, segments, _Fuel())


def declared_names(schema: JSONObject) -> list[str]:
    """Return the names of the arguments that `schema` describes."""
    return [
        name for node in _nodes(schema, schema) for name in cast("JSONObject", node.get("properties", {}))
    ]


class _Fuel:
    """Counts the schemas that are looked at for one place: those that refer to themselves have no end."""

    def __init__(self) -> None:
        self._left = _MAX_NODES

    def burn(self) -> bool:
        self._left -= 1
        return self._left >= 0


def _reach(schema: JSON, root: JSONObject, segments: tuple[str, ...], fuel: _Fuel) -> Reach:
    if schema is False:
        return Reach.CLOSED
    if not segments:
        return Reach.DECLARED
    if not isinstance(schema, dict) or not fuel.burn():
        return Reach.OPEN
    node = schema
    applied = [_reach_below(node, root, segments, fuel)]
    applied += [_reach(part, root, segments, fuel) for part in cast("list[Any]", node.get("allOf", []))]
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        applied.append(_reach(_at(root, reference), root, segments, fuel))
    for keyword in ("anyOf", "oneOf"):
        parts = cast("list[Any]", node.get(keyword, []))
        if parts:
            applied.append(max(_reach(part, root, segments, fuel) for part in parts))
    # All of these apply: one that closes the place decides, otherwise one that declares it.
    return Reach.CLOSED if Reach.CLOSED in applied else max(applied)


def _reach_below(node: JSONObject, root: JSONObject, segments: tuple[str, ...], fuel: _Fuel) -> Reach:
    """Return the reach by the keywords of one schema that speak of members and items."""
    name, rest = segments[0], segments[1:]
    if (child := _property(node, name)) is not None:
        return _reach(child, root, rest, fuel)
    if _is_index(name) and ("items" in node or "prefixItems" in node):
        # Whether a place is within a list depends on its length, which is not worked out here.
        return max(Reach.OPEN, _reach(node.get("items", True), root, rest, fuel))
    others = node.get("additionalProperties", node.get("unevaluatedProperties", True))
    if others is False:
        # A pattern, or a schema that applies beside an unevaluatedProperties, may still allow the name.
        is_certain = "additionalProperties" in node and "patternProperties" not in node
        return Reach.CLOSED if is_certain else Reach.OPEN
    return max(Reach.OPEN, _reach(others, root, rest, fuel)) if isinstance(others, dict) else Reach.OPEN


def _is_index(segment: str) -> bool:
    return segment.isdecimal() and len(segment) < 10


def _step(value: JSON | Gap, segment: str) -> JSON | Gap:
    if isinstance(value, dict):
        return value.get(segment, Gap.EMPTY)
    if isinstance(value, list):
        return value[int(segment)] if _is_index(segment) and int(segment) < len(value) else Gap.EMPTY
    return Gap.EMPTY


def _default(nodes: list[JSONObject], *, is_known: bool, is_required: bool) -> JSON | Gap:
    for node in nodes:
        if "default" in node:
            return node["default"]
    return Gap.UNTOLD if is_known and not is_required else Gap.EMPTY


def _property(node: JSONObject, segment: str) -> Any:
    properties = node.get("properties")
    return cast("JSONObject", properties).get(segment) if isinstance(properties, dict) else None


def _nodes(schema: Any, root: JSONObject) -> Iterator[JSONObject]:
    """Yield a schema and those that apply with it: behind its reference, and in its compositions."""
    waiting: list[Any] = [schema]
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        node = waiting.pop(0)
        if not isinstance(node, dict):
            continue
        node = cast("JSONObject", node)
        yield node
        waiting.extend(
            part
            for keyword in ("allOf", "anyOf", "oneOf")
            for part in cast("list[Any]", node.get(keyword, []))
        )
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            waiting.append(_at(root, reference))


def _at(root: JSONObject, reference: str) -> Any:
    value: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def _texts(value: JSON) -> list[str]:
    return cast("list[str]", value) if isinstance(value, list) else []
