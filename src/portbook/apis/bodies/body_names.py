"""The names in a form, each of which belongs to one argument. Pure: no I/O.

A server may read `amount[]` as `amount`. No argument can reach the name of another one that way, nor one that
is fixed in the query: many servers read both into one table.
"""

from __future__ import annotations

from collections.abc import Iterable

from portbook.apis.parameter_styles import unsendable
from portbook.apis.query_names import TakenNames
from portbook.tools.http_operation import BodyPart

__all__ = ["BodyNames"]

_ANY_PART = BodyPart("")
_NOTHING_FIXED = TakenNames("", ())


class BodyNames:
    """The parts of one operation's form, by name."""

    __slots__ = ("_fixed", "_parts", "_taken")

    def __init__(self, parts: Iterable[BodyPart], query: TakenNames = _NOTHING_FIXED) -> None:
        """Compare names with the described `parts`, and with what is fixed in the `query`."""
        self._fixed = query
        self._parts = {part.name: part for part in parts}
        self._taken = TakenNames("", [(name, name) for name in self._parts])

    def part_of(self, field: str) -> BodyPart:
        """Return how a field is written; one that the document does not describe is written by its value."""
        return self._parts.get(field, _ANY_PART)

    def is_described(self, field: str) -> bool:
        """Return whether the document describes a field of this name."""
        return field in self._parts

    def require_own(self, name: str, field: str, place: tuple[str, ...], *, is_whole: bool) -> None:
        """Require that `name` in the form belongs to `field`; a field's whole name is its own if described.

        Raises `Refused` where it may be read as that of a different argument, or as one fixed in the query.
        """
        is_described = self.is_described(field)
        if is_whole and is_described:
            return
        is_inside = is_described and name.startswith(f"{field}[")
        if not is_inside and self._fixed.is_fixed(name):
            raise unsendable(place, "is fixed in this tool's query; leave it out")
        if self._taken.is_of_other_argument(name, field):
            raise unsendable(place, "names a different argument in the body; use that one")
