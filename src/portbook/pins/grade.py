"""How much a change of a definition matters. Pure: no I/O."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Grade"]


class Grade(StrEnum):
    """The kind of a change; `on_change` of the settings has a key for each."""

    WORDS = "words"
    """Only what people and models read: titles, descriptions, icons, and schemas that are written differently
    and allow the same."""
    ANNOTATIONS = "annotations"
    """Hints and other metadata, where no effect becomes worse."""
    ADDED = "added"
    """The approved definitions do not have it."""
    REMOVED = "removed"
    """The server no longer has it."""
    NARROWED = "narrowed"
    """It takes or returns less than was approved."""
    WIDENED = "widened"
    """It takes or returns more than was approved. A widened input is how a server begins to ask for data that
    nobody agreed to send."""
    BREAKING = "breaking"
    """Calls that were right are now wrong, the effect is worse, or the change cannot be decided."""
