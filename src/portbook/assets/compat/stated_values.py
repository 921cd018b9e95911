"""What subschemas state of their values: types, lists, bounds. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.assets.compat.equivalence import plain
from portbook.assets.compat.subschemas import Place, Subschemas
from portbook.canonical import canonical_bytes
from portbook.model import JSON, JSONObject

__all__ = ["TYPES", "bounds_of", "forms", "is_exact", "listed_values", "types_at", "types_of"]

TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

# From here on, arithmetic may distinguish an integer from the float that equals it.
_EXACT: Final = 2**53


def types_of(part: JSONObject) -> frozenset[str]:
    """Return the types that one part allows by its `type`, `enum` or `const`."""
    types = TYPES
    if "type" in part:
        said = part["type"]
        types = frozenset(cast("list[str]", said) if isinstance(said, list) else [cast("str", said)])
        if "number" in types:
            types |= {"integer"}
    if "enum" in part or "const" in part:
        listed = cast("list[JSON]", part["enum"]) if "enum" in part else [part["const"]]
        types &= frozenset(map(_kind, listed))
    return types


def types_at(schemas: Subschemas, place: Place) -> frozenset[str]:
    """Return the types of values that all parts of `place` together allow."""
    types = TYPES
    for part in schemas.members_at(place):
        types &= types_of(part)
    return types


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    by_type: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return by_type.get(type(value), "null")


def is_exact(value: JSON) -> bool:
    """Return whether every number in `value` is exact both as an integer and as a float."""
    if isinstance(value, list):
        return all(map(is_exact, value))
    if isinstance(value, dict):
        return all(map(is_exact, value.values()))
    return not isinstance(value, int | float) or abs(value) < _EXACT


def forms(value: JSON) -> tuple[JSON, JSON]:
    """Return `value` with integral numbers as ints, and `value` with all numbers as floats."""
    return plain(value), _floated(value)


def _floated(value: JSON) -> JSON:
    """Return `value` with every number as a float, which is equal in JSON Schema."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [_floated(item) for item in value]
    if isinstance(value, dict):
        return {name: _floated(item) for name, item in value.items()}
    return value


def listed_values(part: JSONObject, keyword: str) -> frozenset[bytes]:
    """Return the values that `enum` or `const` of a part lists, as bytes that are equal where they are."""
    listed = cast("list[JSON]", part[keyword]) if keyword == "enum" else [part[keyword]]
    return frozenset(canonical_bytes(plain(value)) for value in listed)


def bounds_of(part: JSONObject, keywords: tuple[str, ...], sign: int) -> list[tuple[float, bool]]:
    """Return a part's bounds in one direction; a larger one is stricter."""
    found: list[tuple[float, bool]] = []
    for keyword in keywords:
        bound = part.get(keyword)
        if isinstance(bound, int | float):
            found.append((sign * bound, keyword.startswith("exclusive")))
    return found
