"""A definition before and after, part by part and place by place. Pure: no I/O.

Nothing is left out: whoever approves has to see all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from portbook.assets.json_patch import ChangedPlace, changed_places
from portbook.model import JSON, JSONObject
from portbook.pins.definition_parts import is_same_part

__all__ = ["ComparedPart", "compared_parts"]


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
