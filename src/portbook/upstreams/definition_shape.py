"""The shape that a definition has to have before it can be approved, kept or served. Pure: no I/O.

A lenient operator lets pass what is a little wrong, never what nothing can be done with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from portbook.model import JSON, JSONObject

__all__ = ["problem_in", "without_nulls"]

# Parts of every kind of definition; each may be missing.
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "title": (str, "a string"),
    "description": (str, "a string"),
    "inputSchema": (dict, "an object"),
    "outputSchema": (dict, "an object"),
    "annotations": (dict, "an object"),
    "execution": (dict, "an object"),
    "_meta": (dict, "an object"),
    "icons": (list, "a list"),
    "arguments": (list, "a list"),
}


def without_nulls(definition: JSONObject) -> JSONObject:
    """Return a definition without the parts that are null, which some servers write for what is missing."""
    if None not in definition.values():
        return definition
    return {part: value for part, value in definition.items() if value is not None or part not in _TYPES}


def problem_in(definition: JSONObject, named_by: str, *, is_tool: bool = False) -> str | None:
    """Return what makes a definition unusable, with its place; None where nothing does."""
    if not isinstance(definition.get(named_by), str):
        return f"/{named_by}: must be a string"
    if not definition[named_by]:
        return f"/{named_by}: must not be empty"
    for part, (wanted, words) in _TYPES.items():
        if part in definition and not isinstance(definition[part], wanted):
            return f"/{part}: must be {words}"
    if is_tool and "inputSchema" not in definition:
        return "/inputSchema: is missing"
    return _problem_in_arguments(definition.get("arguments", []))


def _problem_in_arguments(arguments: JSON) -> str | None:
    for at, each in enumerate(arguments if isinstance(arguments, list) else []):
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            return f"/arguments/{at}: must be an object with a name"
    return None
