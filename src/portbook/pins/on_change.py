"""What a change of each grade and a finding of the scan lead to, by `on_change` and without. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, cast

from portbook.apis.table_reader import Table
from portbook.scan.scanned_text_and_finding import ScanFinding, Tier

__all__ = [
    "PIN_KEYS",
    "Grade",
    "OnChange",
    "PinSettings",
    "Reaction",
    "TrustedBy",
    "reaction_to_finding",
    "read_pin_settings",
    "strictest",
]

# How much a change of a definition matters.


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


def reaction_to_finding(finding: ScanFinding, *, is_accepted: bool) -> Reaction:
    """Return what a finding leads to; a soft one does not outweigh an operator who accepts such changes."""
    if finding.tier is Tier.HARD:
        return Reaction.BLOCK
    return Reaction.ACCEPT if is_accepted else Reaction.ASK


# `trust` and `on_change` of a server: who approves its definitions, and what a change leads to.

TrustedBy = Literal["lock", "first-use"]

PIN_KEYS: Final = ("trust", "on_change")


@dataclass(frozen=True, slots=True)
class PinSettings:
    """How the definitions of one server are approved."""

    trust: TrustedBy = "lock"
    """`lock`: by a person. `first-use`: what is seen first is approved, and written to the lock."""
    on_change: OnChange = field(default_factory=OnChange)


def read_pin_settings(table: Table) -> PinSettings:
    """Return the settings of a server's table.

    Raises the table's exception for a value that is none of its choices.
    """
    trust = cast("TrustedBy", table.choice("trust", ("lock", "first-use")) or "lock")
    if "on_change" not in table:
        return PinSettings(trust)
    changes = table.table("on_change")
    changes.only(Grade)
    given = {grade.value: changes.choice(grade, tuple(Reaction)) for grade in Grade}
    return PinSettings(trust, OnChange(**{name: Reaction(each) for name, each in given.items() if each}))
