"""Titles, icons and audiences in listings, validated. Pure: no I/O.

They are validated at declaration. Otherwise a listing would silently leave out an entry whose metadata is
not valid MCP.
"""

from __future__ import annotations

from typing import Any, Final

from portbook.model import JSONObject
from portbook.tools.spec import BadTool

__all__ = ["require_valid", "shown_of"]

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


def shown_of(what: str, **members: Any) -> JSONObject:
    """Return the listing metadata of `what`: the members that are given.

    Raises `BadTool` where a member is not valid MCP.
    """
    shown: JSONObject = {name: value for name, value in members.items() if value not in (None, (), [])}
    if isinstance(shown.get("icons"), tuple):
        shown["icons"] = list(members["icons"])
    if shown:
        require_valid(what, shown, _SHOWN)
    return shown


def require_valid(what: str, given: JSONObject, schema: JSONObject) -> None:
    """Raise `BadTool` where metadata of `what` breaks its schema."""
    from portbook.schema.engine import validator_for  # loads the engine only where needed

    findings = validator_for(schema).findings(given)
    if findings:
        raise BadTool(f"{what}: {findings[0].pointer.lstrip('/')}: {findings[0].message}")
