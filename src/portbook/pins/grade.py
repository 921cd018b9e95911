"""How much a change of a definition matters, and what is done about it. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["Grade", "OnChange", "Reaction", "strictest"]


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


class Reaction(StrEnum):
    """What a change of one grade leads to."""

    ACCEPT = "accept"
    """It is served as it is now."""
    ASK = "ask"
    """It is withheld until a person has reviewed it."""
    BLOCK = "block"
    """It is withheld, and a review has to be forced."""


# From the mildest to the strictest.
_STRICTNESS: Final = (Reaction.ACCEPT, Reaction.ASK, Reaction.BLOCK)


def strictest(reactions: Iterable[Reaction]) -> Reaction:
    """Return the strictest of some reactions; without any, there is nothing to do."""
    return max(reactions, key=_STRICTNESS.index, default=Reaction.ACCEPT)


@dataclass(frozen=True, slots=True)
class OnChange:
    """What each grade leads to."""

    words: Reaction = Reaction.ACCEPT
    annotations: Reaction = Reaction.ASK
    added: Reaction = Reaction.ASK
    removed: Reaction = Reaction.ACCEPT
    narrowed: Reaction = Reaction.ASK
    widened: Reaction = Reaction.ASK
    breaking: Reaction = Reaction.BLOCK

    def reaction_to(self, grades: Iterable[Grade]) -> Reaction:
        """Return the strictest reaction to several changes of one definition."""
        return strictest(Reaction(getattr(self, grade.value)) for grade in grades)
