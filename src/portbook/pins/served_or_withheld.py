"""Decides how each definition of a server stands, and whether it is served. Pure: no I/O.

    pending   there are no approved definitions of this server: withheld until a person approves them
    approved  as approved
    changed   different from the approved definition: `on_change` of its server decides

What is not approved is scanned as well. A hard finding withholds it, and a soft one makes a person look,
unless the settings accept changes of this grade; what a person approved as it is has been looked at.

From `changed`, a person leads back to `approved`, or the server does by a return to what was approved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from portbook.model import JSON, JSONObject
from portbook.pins.change_grades import Effort
from portbook.pins.difference import Difference, difference_of
from portbook.pins.on_change import Grade, OnChange, Reaction, reaction_to_finding, strictest
from portbook.pins.pinned_definitions import PinnedKind, ServerDefinitions
from portbook.scan.definition_scan import scan_definition
from portbook.scan.scanned_text_and_finding import ScanFinding, Tier
from portbook.scan.shadowing import Neighbours

__all__ = ["PinVerdict", "PinVerdicts", "Standing", "judge", "without_attacks"]


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
    findings: tuple[ScanFinding, ...] = ()
    """What the scan found in the observed definition, unless it is as approved."""

    @property
    def is_quarantined(self) -> bool:
        """Return whether the scan found an attack."""
        return any(each.tier is Tier.HARD for each in self.findings)

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
        findings: list[JSON] = [each.as_data() for each in self.findings]
        return {**self.difference.as_data(), **found, **({"findings": findings} if findings else {})}

    def as_told(self) -> JSONObject:
        """Return what a caller may know of a withheld definition: nothing that its server wrote."""
        grades = ", ".join(grade.value for grade in Grade if grade in self.difference.grades)
        told: JSONObject = {"standing": self.standing.value, "grades": grades}
        checks = sorted({each.check.value for each in self.findings if each.tier is Tier.HARD})
        return {**told, "findings": ", ".join(checks)} if checks else told


PinVerdicts: TypeAlias = Mapping[tuple[PinnedKind, str], PinVerdict]


def judge(
    approved: ServerDefinitions | None,
    observed: ServerDefinitions,
    on_change: OnChange,
    others: Mapping[str, Collection[str]] | None = None,
) -> PinVerdicts:
    """Return the verdict on every definition, approved or observed; without pins, `approved` is None.

    `others` are the names of the tools of other servers, by alias.
    """
    effort, near = Effort(), Neighbours(others or {}, own=observed.tools.keys())
    keys = observed.names() if approved is None else sorted({*approved.names(), *observed.names()})
    return {key: _judged(key, approved, observed, on_change, effort, near) for key in keys}


def without_attacks(observed: ServerDefinitions, verdicts: PinVerdicts) -> ServerDefinitions:
    """Return the observed definitions but for those in which the scan found an attack."""
    for key, verdict in verdicts.items():
        if verdict.is_quarantined:
            observed = observed.merged(*key, None)
    return observed


def _judged(
    key: tuple[PinnedKind, str],
    approved: ServerDefinitions | None,
    observed: ServerDefinitions,
    on_change: OnChange,
    effort: Effort,
    near: Neighbours,
) -> PinVerdict:
    before = None if approved is None else approved.of(*key)
    difference = difference_of(*key, before, observed.of(*key), effort)
    if not difference.changes:
        return PinVerdict(Standing.APPROVED, Reaction.ACCEPT, difference)
    findings = _findings(key, observed, near)
    if approved is None:
        standing, reaction, is_accepted = Standing.PENDING, Reaction.ASK, False
    else:
        standing, reaction = Standing.CHANGED, on_change.reaction_to(difference.grades)
        is_accepted = on_change.is_accepted(difference.grades)
    raised = [reaction_to_finding(each, is_accepted=is_accepted) for each in findings]
    return PinVerdict(standing, strictest((reaction, *raised)), difference, findings)


def _findings(
    key: tuple[PinnedKind, str], observed: ServerDefinitions, near: Neighbours
) -> tuple[ScanFinding, ...]:
    kind, name = key
    definition = observed.of(kind, name)
    if definition is None:
        return ()
    return scan_definition(name, definition, near, is_tool=kind == "tool")
