"""`Difference`: how an observed definition differs from the approved one, part by part. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from portbook.assets.json_patch import ChangedPlace, changed_places
from portbook.model import JSON, JSONObject
from portbook.pins.change_grades import Effort, grade_of_part
from portbook.pins.on_change import Grade
from portbook.pins.pinned_definitions import PinnedKind, digest_of_part, is_same_part, parts_of

__all__ = [
    "ComparedPart",
    "Difference",
    "PartChange",
    "compared_parts",
    "difference_of",
]

# A definition before and after, part by part and place by place.
#
# Nothing is left out: whoever approves has to see all of it.


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """A part that differs: both sides whole, and the places in which they differ."""

    part: str
    approved: JSON
    observed: JSON
    places: tuple[ChangedPlace, ...]

    def as_data(self) -> JSONObject:
        """Return it as JSON."""
        places: list[JSON] = [
            {"pointer": place.pointer, "approved": place.before, "observed": place.after}
            for place in self.places
        ]
        return {"part": self.part, "approved": self.approved, "observed": self.observed, "places": places}


def compared_parts(approved: JSONObject | None, observed: JSONObject | None) -> Iterator[ComparedPart]:
    """Yield the parts that differ between two definitions, ordered by name; None is one without parts."""
    before, after = approved or {}, observed or {}
    for part in sorted(before.keys() | after.keys()):
        sides = before.get(part), after.get(part)
        if not is_same_part(*sides):
            yield ComparedPart(part, *sides, tuple(changed_places(*sides)))


@dataclass(frozen=True, slots=True)
class PartChange:
    """One part that differs."""

    part: str
    """The member of the definition; empty where the definition as a whole is new or gone."""
    grade: Grade
    note: str
    approved: str | None = None
    """The digest of the approved part; None where it has none."""
    observed: str | None = None
    instances: tuple[JSON, ...] = ()
    """Values that show the change of a schema."""

    def as_data(self) -> JSONObject:
        """Return the change as JSON, with digests in place of the parts."""
        data: JSONObject = {
            "part": self.part,
            "grade": self.grade.value,
            "note": self.note,
            "approved": self.approved,
            "observed": self.observed,
        }
        return {**data, "instances": list(self.instances)} if self.instances else data


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes of one definition; none where it is as approved."""

    kind: PinnedKind
    name: str
    changes: tuple[PartChange, ...] = ()

    @property
    def grades(self) -> frozenset[Grade]:
        """Return the grades of the changes."""
        return frozenset(change.grade for change in self.changes)

    def as_data(self) -> JSONObject:
        """Return the difference as JSON, with digests in place of the parts."""
        changes: list[JSON] = [change.as_data() for change in self.changes]
        return {"kind": self.kind, "name": self.name, "changes": changes}


def difference_of(
    kind: PinnedKind,
    name: str,
    approved: Mapping[str, JSON] | None,
    observed: Mapping[str, JSON] | None,
    effort: Effort,
) -> Difference:
    """Return how a definition differs from the approved one; None stands for one that does not exist."""
    if approved is None or observed is None:
        return Difference(kind, name, _whole(approved, observed))
    before, after = parts_of(approved), parts_of(observed)
    changed = [
        part
        for part in sorted(before.keys() | after.keys())
        if not is_same_part(before.get(part), after.get(part))
    ]
    changes = tuple(_change(part, before.get(part), after.get(part), effort) for part in changed)
    return Difference(kind, name, changes)


def _whole(
    approved: Mapping[str, JSON] | None, observed: Mapping[str, JSON] | None
) -> tuple[PartChange, ...]:
    if observed is not None:
        digest = digest_of_part("", parts_of(observed))
        return (PartChange("", Grade.ADDED, "it is not among the approved definitions", None, digest),)
    if approved is not None:
        digest = digest_of_part("", parts_of(approved))
        return (PartChange("", Grade.REMOVED, "the server no longer has it", digest),)
    return ()


def _change(part: str, before: JSON, after: JSON, effort: Effort) -> PartChange:
    found = grade_of_part(part, before, after, effort)
    sides = digest_of_part(part, before), digest_of_part(part, after)
    return PartChange(part, found.grade, found.note, *sides, found.instances)
