"""Decides how each definition of a server stands, and whether it is served. Pure: no I/O.

    pending   there are no approved definitions of this server: withheld until a person approves them
    approved  as approved
    changed   different from the approved definition: `on_change` of its server decides

From `changed`, a person leads back to `approved`, or the server does by a return to what was approved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from portbook.model import JSONObject
from portbook.pins.difference import Difference, PinnedKind, difference_of
from portbook.pins.grade import Grade, OnChange, Reaction
from portbook.pins.schema_change import Effort
from portbook.pins.server_definitions import ServerDefinitions

__all__ = ["PinVerdict", "PinVerdicts", "Standing", "judge"]


class Standing(StrEnum):
    """How a definition stands."""

    PENDING = "pending"
    APPROVED = "approved"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class PinVerdict:
    """How one definition stands, why, and what follows."""

    standing: Standing
    reaction: Reaction
    difference: Difference

    @property
    def is_served(self) -> bool:
        """Return whether clients get the definition as it was observed."""
        return self.reaction is Reaction.ACCEPT and Grade.REMOVED not in self.difference.grades

    @property
    def is_withheld(self) -> bool:
        """Return whether it is kept from clients; what was removed, and accepted as such, does not exist."""
        return self.reaction is not Reaction.ACCEPT

    def as_data(self) -> JSONObject:
        """Return the verdict as JSON, for records and programs."""
        found = {"standing": self.standing.value, "reaction": self.reaction.value}
        return {**self.difference.as_data(), **found}

    def as_told(self) -> JSONObject:
        """Return what a caller may know of a withheld definition: nothing that its server wrote."""
        grades = ", ".join(grade.value for grade in Grade if grade in self.difference.grades)
        return {"standing": self.standing.value, "grades": grades}


PinVerdicts: TypeAlias = Mapping[tuple[PinnedKind, str], PinVerdict]


def judge(
    approved: ServerDefinitions | None, observed: ServerDefinitions, on_change: OnChange
) -> PinVerdicts:
    """Return the verdict on every definition, approved or observed; without pins, `approved` is None."""
    effort = Effort()
    if approved is None:
        return {key: _pending(key, observed, effort) for key in observed.names()}
    keys = sorted({*approved.names(), *observed.names()})
    return {key: _compared(key, approved, observed, on_change, effort) for key in keys}


def _pending(key: tuple[PinnedKind, str], observed: ServerDefinitions, effort: Effort) -> PinVerdict:
    return PinVerdict(Standing.PENDING, Reaction.ASK, difference_of(*key, None, observed.of(*key), effort))


def _compared(
    key: tuple[PinnedKind, str],
    approved: ServerDefinitions,
    observed: ServerDefinitions,
    on_change: OnChange,
    effort: Effort,
) -> PinVerdict:
    difference = difference_of(*key, approved.of(*key), observed.of(*key), effort)
    standing = Standing.CHANGED if difference.changes else Standing.APPROVED
    return PinVerdict(standing, on_change.reaction_to(difference.grades), difference)
