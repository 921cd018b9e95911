"""Which hints of a server are believed: those that a person approved, and stricter ones. Pure: no I/O.

A server says of itself whether a tool only reads. Until a person has approved that, it may make an effect
stricter, never looser: a changed definition that is accepted keeps the worse effect of the two, and one that
was never approved counts as destructive.
"""

from __future__ import annotations

from typing import Final

from portbook.model import JSON, JSONObject

__all__ = ["harm_of", "with_trusted_hints"]

# The hints that an effect follows from, by the effect.
_EFFECT_HINTS: Final = ("readOnlyHint", "destructiveHint")
_NEVER_APPROVED: Final[JSONObject] = {}


def harm_of(annotations: JSON) -> int:
    """Return the effect that annotations declare, by MCP's own defaults: 0 reads, 1 writes, 2 destroys."""
    hints = annotations if isinstance(annotations, dict) else {}
    if hints.get("readOnlyHint") is True:
        return 0
    return 1 if hints.get("destructiveHint") is False else 2


def with_trusted_hints(observed: JSONObject, approved: JSONObject | None) -> JSONObject:
    """Return the observed parts of a tool, with no better effect than was approved; None for never."""
    before, after = (approved or _NEVER_APPROVED).get("annotations"), observed.get("annotations")
    if harm_of(before) <= harm_of(after):
        return observed
    hints = {name: value for name, value in _members(after).items() if name not in _EFFECT_HINTS}
    kept = {name: value for name, value in _members(before).items() if name in _EFFECT_HINTS}
    return {**observed, "annotations": {**hints, **kept}}


def _members(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
