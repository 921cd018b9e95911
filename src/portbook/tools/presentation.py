"""What listings say of something beside its contract: titles, icons, annotations. Pure: no I/O.

Checked when it is declared: a list of MCP would leave out what it has no valid description for, and its
author would not know why.
"""

from __future__ import annotations

from typing import Any, Final

from portbook.model import JSONObject
from portbook.tools.spec import BadTool

__all__ = ["hints_of", "shown_of"]

_TEXT: Final[JSONObject] = {"type": "string", "minLength": 1}

_ICON: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "src": {"type": "string", "format": "uri"},
        "mimeType": _TEXT,
        "sizes": {"type": "array", "items": _TEXT},
        "theme": {"enum": ["light", "dark"]},
    },
    "required": ["src"],
    "additionalProperties": False,
}

_SHOWN: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "title": _TEXT,
        "mimeType": _TEXT,
        "icons": {"type": "array", "items": _ICON},
        "annotations": {
            "type": "object",
            "properties": {
                "audience": {"type": "array", "items": {"enum": ["user", "assistant"]}},
                "priority": {"type": "number", "minimum": 0, "maximum": 1},
                "lastModified": _TEXT,
            },
            "additionalProperties": False,
        },
    },
}

_HINTS: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "annotations": {
            "type": "object",
            "properties": {
                "title": _TEXT,
                "readOnlyHint": True,
                "destructiveHint": True,
                "idempotentHint": {"type": "boolean"},
                "openWorldHint": {"type": "boolean"},
            },
            "additionalProperties": False,
        }
    },
}

# What a tool's effect says already; two places for one fact would come to differ.
_BY_EFFECT: Final = ("readOnlyHint", "destructiveHint")


def shown_of(what: str, **members: Any) -> JSONObject:
    """Return what a listing says of `what`: the members that are there.

    Raises `BadTool` where MCP has no such description.
    """
    shown: JSONObject = {name: value for name, value in members.items() if value not in (None, (), [])}
    if isinstance(shown.get("icons"), tuple):
        shown["icons"] = list(members["icons"])
    if shown:
        _require(what, shown, _SHOWN)
    return shown


def hints_of(what: str, annotations: Any) -> JSONObject:
    """Return what MCP's annotations say of a tool beside its effect.

    Raises `BadTool` where MCP has no such annotations, or they say what `effect` says.
    """
    if annotations is None:
        return {}
    hints: JSONObject = annotations
    _require(what, {"annotations": hints}, _HINTS)
    if any(name in hints for name in _BY_EFFECT):
        names = " and ".join(_BY_EFFECT)
        raise BadTool(f"{what}: annotations: say {names} with effect=..., and leave them out")
    return hints


def _require(what: str, given: JSONObject, schema: JSONObject) -> None:
    from portbook.schema.cache import validator_for  # the engine, only where there is something to check

    findings = validator_for(schema).findings(given)
    if findings:
        raise BadTool(f"{what}: {findings[0].pointer.lstrip('/')}: {findings[0].message}")
