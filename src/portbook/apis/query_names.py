"""Which names in a query are taken: those that the operator fixed, and those of parameters. Pure: no I/O.

A query may have a name twice, and servers differ in which of the two they believe. So that a caller cannot
say again what somebody else has said, names are compared as the most generous server reads them: without
regard to case or to spaces around them, and `tenant[]` or `tenant[x]` as another way to write `tenant`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Final
from urllib.parse import parse_qsl

__all__ = ["TakenNames"]

# How many brackets of a name are looked at: deeper than any parameter of an API, and no work for a long name.
_NESTINGS: Final = 8


class TakenNames:
    """The names of one operation's query that are not free."""

    __slots__ = ("_fixed", "_placed")

    def __init__(self, fixed_query: str, placed: Iterable[tuple[str, str]]) -> None:
        """Take the query that is part of the path, and the parameters: their names, and whose they are."""
        # Some servers take a semicolon for what others write as an ampersand.
        fixed = parse_qsl(fixed_query.replace(";", "&"), keep_blank_values=True)
        self._fixed = _index((name, "") for name, _ in fixed)
        self._placed = _index(placed)

    def is_fixed(self, name: str) -> bool:
        """Return whether the operator has fixed what stands under `name`."""
        return bool(self._fixed) and bool(_owners(self._fixed, name))

    def is_anothers(self, name: str, argument: str) -> bool:
        """Return whether `name` is that of a parameter which is not `argument`."""
        return bool(self._placed) and bool(_owners(self._placed, name) - {argument})


def _index(names: Iterable[tuple[str, str]]) -> dict[tuple[str, bool], set[str]]:
    """Return who owns each form of these names; beside a form, whether it is the whole name."""
    found: dict[tuple[str, bool], set[str]] = {}
    for name, owner in names:
        *shorter, whole = _forms(name)
        found.setdefault((whole, True), set()).add(owner)
        for form in shorter:
            found.setdefault((form, False), set()).add(owner)
    return found


def _owners(index: dict[tuple[str, bool], set[str]], name: str) -> set[str]:
    """Return who owns names that `name` may be taken for: `a[b]` for `a`, and `a` for `a[b]`."""
    forms = _forms(name)
    found = [index.get((form, True)) for form in forms]
    found.append(index.get((forms[-1], False)))
    return {owner for owners in found if owners for owner in owners}


def _forms(name: str) -> list[str]:
    """Return `a`, `a[b]` and `a[b][c]` for `a[b][c]`: the last one is the whole name."""
    parts = name.strip().casefold().split("[", _NESTINGS)
    return list(accumulate(parts, lambda before, part: f"{before}[{part}"))
