"""The annotations of a tool: those that it declares, and those that follow from its effect. Pure: no I/O."""

from __future__ import annotations

from typing import Any, Final

from portbook.model import JSONObject
from portbook.tools.spec import BadTool, Effect, ToolSpec
from portbook.tools.titles_and_icons import require_valid

__all__ = ["hints_by_effect", "hints_of"]

_TEXT: Final[JSONObject] = {"type": "string", "minLength": 1}

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

# Derived from a tool's effect; declared twice, the two could differ.
_BY_EFFECT: Final = ("readOnlyHint", "destructiveHint")


def hints_of(what: str, annotations: Any) -> JSONObject:
    """Return a tool's MCP annotations, without those that its effect determines.

    Raises `BadTool` where they are not valid MCP, or repeat what `effect` declares.
    """
    if annotations is None:
        return {}
    hints: JSONObject = annotations
    require_valid(what, {"annotations": hints}, _HINTS)
    if any(name in hints for name in _BY_EFFECT):
        names = " and ".join(_BY_EFFECT)
        raise BadTool(f"{what}: annotations: remove {names}; effect=... sets them")
    return hints


def hints_by_effect(spec: ToolSpec) -> JSONObject:
    """Return the annotations that follow from a tool's effect."""
    if not spec.is_effect_declared:
        return {"readOnlyHint": False}  # undeclared: MCP then assumes that it may be destructive
    return {
        "readOnlyHint": spec.effect is Effect.READ,
        "destructiveHint": spec.effect is Effect.DESTRUCTIVE,
    }
