"""Reserved names in a query: those that the operator fixed, and those of parameters. Pure: no I/O.

A query may have a name twice, and servers differ in which of the two they use. So that a caller cannot
override a reserved name, names are compared as the most lenient server would: without case and surrounding
spaces, and with `tenant[]` and `tenant[x]` equal to `tenant`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Final
from urllib.parse import parse_qsl

__all__ = ["TakenNames"]

# How many brackets of a name are compared: deeper than any real parameter, and bounded for long names.
_NESTINGS: Final = 8


class TakenNames:
    """The reserved names of one operation's query."""

    __slots__ = ("_fixed", "_placed")

    def __init__(
        self, fixed_query: str, placed: Iterable[tuple[str, str]], credentials: Iterable[str] = ()
    ) -> None:
        """Reserve the names in the path's query, those of credentials, and the parameters.

        Parameters are pairs of name and argument.
        """
        # Some servers accept a semicolon as an ampersand.
        fixed = parse_qsl(fixed_query.replace(";", "&"), keep_blank_values=True)
        self._fixed = _index((name, "") for name in (*(name for name, _ in fixed), *credentials))
        self._placed = _index(placed)

    def is_fixed(self, name: str) -> bool:
        """Return whether the operator has fixed the value of `name`."""
        return bool(self._fixed) and bool(_owners(self._fixed, name))

    def is_of_other_argument(self, name: str, argument: str) -> bool:
        """Return whether `name` belongs to a parameter other than `argument`."""
        return bool(self._placed) and bool(_owners(self._placed, name) - {argument})


def _index(names: Iterable[tuple[str, str]]) -> dict[tuple[str, bool], set[str]]:
    """Return the owners of each form of these names; the key also says whether it is the whole name."""
    found: dict[tuple[str, bool], set[str]] = {}
    for name, owner in names:
        *shorter, whole = _forms(name)
        found.setdefault((whole, True), set()).add(owner)
        for form in shorter:
            found.setdefault((form, False), set()).add(owner)
    return found


def _owners(index: dict[tuple[str, bool], set[str]], name: str) -> set[str]:
    """Return the owners of names that a server may confuse with `name`: `a[b]` with `a`, `a` with `a[b]`."""
    forms = _forms(name)
    found = [index.get((form, True)) for form in forms]
    found.append(index.get((forms[-1], False)))
    return {owner for owners in found if owners for owner in owners}


def _forms(name: str) -> list[str]:
    """Return `a`, `a[b]` and `a[b][c]` for `a[b][c]`; the last is the whole name."""
    parts = name.strip().casefold().split("[", _NESTINGS)
    return list(accumulate(parts, lambda before, part: f"{before}[{part}"))
