"""What a change of each grade leads to, and what it does unless the settings say otherwise. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from portbook.pins.grade import Grade

__all__ = ["OnChange", "Reaction", "strictest"]


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


_UNLESS_SET: Final = {
    Grade.WORDS: Reaction.ACCEPT,
    Grade.ANNOTATIONS: Reaction.ASK,
    Grade.ADDED: Reaction.ASK,
    Grade.REMOVED: Reaction.ACCEPT,
    Grade.NARROWED: Reaction.ASK,
    Grade.WIDENED: Reaction.ASK,
    Grade.BREAKING: Reaction.BLOCK,
}


@dataclass(frozen=True, slots=True)
class OnChange:
    """What the settings say of each grade; None where they say nothing."""

    words: Reaction | None = None
    annotations: Reaction | None = None
    added: Reaction | None = None
    removed: Reaction | None = None
    narrowed: Reaction | None = None
    widened: Reaction | None = None
    breaking: Reaction | None = None

    def reaction_to(self, grades: Iterable[Grade]) -> Reaction:
        """Return the strictest reaction to several changes of one definition."""
        return strictest(self._set(grade) or _UNLESS_SET[grade] for grade in grades)

    def is_accepted(self, grades: Iterable[Grade]) -> bool:
        """Return whether the operator has said that changes of all these grades are accepted."""
        return all(self._set(grade) is Reaction.ACCEPT for grade in grades)

    def _set(self, grade: Grade) -> Reaction | None:
        return getattr(self, grade.value)
