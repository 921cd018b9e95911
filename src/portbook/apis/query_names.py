"""Reserved names in a query, a form or cookies: fixed by the operator, or those of parameters. Pure: no I/O.

A name may be there twice, and servers differ in which of the two they use, and in what they take for the same
name. So that a caller cannot override a reserved name, names are compared as the most lenient servers read
them; two are the same if any reading of one is, or begins with, a reading of the other:

| name | is read as |
| --- | --- |
| `Tenant`, ` tenant ` | `tenant`: without case and surrounding spaces; PHP drops only those before the name |
| `tenant[]`, `tenant[x]`, `[tenant]` | `tenant`, or a member of it |
| `tenant.id`, `tenant id` | `tenant_id`, as in PHP |
| `tenant[id` | `tenant_id`, as in PHP, where the bracket is not closed; a member of `tenant` in Rails |
| `tenant`, NUL, anything | `tenant`, where a NUL ends a text |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, product
from typing import Final
from urllib.parse import parse_qsl

__all__ = ["TakenNames"]

# How many brackets of a name are compared: deeper than any real parameter, and bounded for long names.
_NESTINGS: Final = 8
_BRACKETS: Final = re.compile(r"[\[\]]+")
_UNDERSCORES: Final = str.maketrans({".": "_", " ": "_"})


class TakenNames:
    """The reserved names of one operation's query, form or cookies."""

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
        for *shorter, whole in _readings(name):
            found.setdefault((whole, True), set()).add(owner)
            for form in shorter:
                found.setdefault((form, False), set()).add(owner)
    return found


def _owners(index: dict[tuple[str, bool], set[str]], name: str) -> set[str]:
    """Return the owners of names that a server may confuse with `name`: `a[b]` with `a`, `a` with `a[b]`."""
    found: set[str] = set()
    for forms in _readings(name):
        for form in forms:
            found |= index.get((form, True), set())
        found |= index.get((forms[-1], False), set())
    return found


def _readings(name: str) -> Iterator[list[str]]:
    """Yield what servers read in a name; `a`, `a[b` and `a[b[c` for `a[b][c]`, the last being the whole."""
    texts = {name, name.partition("\0")[0], name.replace("\0", "")} if "\0" in name else {name}
    # PHP drops only the spaces before a name: one after it is an underscore.
    trims = (str.strip, str.lstrip) if " " in name else (str.strip,)
    for text, trim in product(texts, trims):
        plain = trim(text).casefold()
        parts = [trim(part).translate(_UNDERSCORES) for part in _BRACKETS.split(plain, _NESTINGS)]
        if parts := [part for part in parts if part]:
            yield list(accumulate(parts, lambda before, part: f"{before}[{part}"))
        before, opened, after = plain.partition("[")
        if before and opened and "]" not in after:
            yield [f"{before}_{after.replace('[', '_')}".translate(_UNDERSCORES)]
