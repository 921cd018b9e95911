"""The members of a JSON body that its schema describes. Pure: no I/O.

Only what is described may have a name that is fixed in the query; every other name is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from portbook.model import JSONObject

__all__ = ["described_members"]

_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_DEFINITIONS: Final = "#/$defs/"


def described_members(schema: JSONObject, whole: str | None) -> frozenset[str]:
    """Return the properties of a tool's input, or of its argument `whole`, and of the schemas it combines.

    A reference that leads elsewhere than to a definition describes nothing.
    """
    root = cast("dict[str, Any]", schema)
    first: Any = root if whole is None else _objects(root, "properties").get(whole)
    definitions = _objects(root, "$defs")
    pending, seen, found = [first], set[str](), set[str]()
    while pending:
        each = pending.pop()
        if not isinstance(each, dict):
            continue
        given = cast("dict[str, Any]", each)
        found |= _objects(given, "properties").keys()
        pending.extend(_combined(given))
        reference = given.get("$ref")
        if isinstance(reference, str) and reference.startswith(_DEFINITIONS) and reference not in seen:
            seen.add(reference)  # each definition once: it may lead back
            pending.append(definitions.get(reference.removeprefix(_DEFINITIONS)))
    return frozenset(found)


def _objects(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    """Return the schemas of a keyword by name; none where something else is there."""
    given = schema.get(keyword)
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _combined(schema: dict[str, Any]) -> Iterator[Any]:
    for keyword in _COMBINED:
        given = schema.get(keyword)
        yield from cast("list[Any]", given) if isinstance(given, list) else ()
