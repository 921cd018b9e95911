r"""Texts that some patterns match and one does not: found, or shown not to exist. Pure: no I/O.

Lengths count as patterns, too: `minLength` 2 is `^[\s\S]{2,}$`.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, cast

from portbook.assets.compat.automaton import Automaton, State
from portbook.assets.compat.pattern_syntax import (
    ANY,
    Edge,
    Node,
    One,
    Repeat,
    Series,
    Unreadable,
    read_pattern,
    representatives,
)
from portbook.model import JSON, JSONObject

__all__ = ["TextLanguages", "Undecided"]

# The keywords whose texts are a regular language.
_KEYWORDS: Final = ("pattern", "minLength", "maxLength")

# What one comparison may spend on patterns, in steps from a position by a character: about a second.
_MAX_STEPS: Final = 1_000_000


class Undecided(Exception):
    """Neither a text was found, nor shown that there is none."""


class TextLanguages:
    """The patterns of one comparison, and what is left to be spent on them."""

    def __init__(self, steps: int = _MAX_STEPS) -> None:
        self._left = steps
        self._automata: dict[tuple[str, JSON], Automaton | None] = {}
        self._found: dict[tuple[Automaton | None, ...], str | None] = {}

    def automaton(self, keyword: str, value: JSON) -> Automaton:
        """Return what `pattern`, `minLength` or `maxLength` requires of a text.

        Raises `Undecided` for syntax that is not read, or too many positions.
        """
        if (keyword, value) not in self._automata:
            try:
                self._automata[keyword, value] = Automaton(_tree(keyword, value))
            except Unreadable:
                self._automata[keyword, value] = None
        found = self._automata[keyword, value]
        if found is None:
            raise Undecided
        return found

    def automata(self, parts: Iterable[JSONObject]) -> list[Automaton]:
        """Return what the patterns and lengths of these subschemas require of a text.

        What cannot be read is left out: the texts are then more than those that the subschemas allow.
        """
        found: list[Automaton] = []
        for part in parts:
            for keyword in _KEYWORDS:
                if keyword in part:
                    with contextlib.suppress(Undecided):
                        found.append(self.automaton(keyword, part[keyword]))
        return found

    def find(self, inside: Sequence[Automaton], outside: Automaton | None) -> str | None:
        """Return a shortest text that all of `inside` match and `outside` does not; None where there is none.

        Raises `Undecided` where that takes more work than is left.
        """
        key = (*inside, outside)
        if key not in self._found:
            self._found[key] = self._search(inside, outside)
        return self._found[key]

    def includes(self, parts: Iterable[JSONObject], keyword: str, value: JSON) -> bool:
        """Return whether it is proved that a keyword allows every text that these subschemas allow."""
        try:
            return self.find(self.automata(parts), self.automaton(keyword, value)) is None
        except Undecided:
            return False

    def are_apart(self, one: str, other: str) -> bool:
        """Return whether it is proved that no text matches both patterns."""
        try:
            both = [self.automaton("pattern", pattern) for pattern in (one, other)]
            return self.find(both, None) is None
        except Undecided:
            return False

    def _search(self, inside: Sequence[Automaton], outside: Automaton | None) -> str | None:
        automata = [*inside, *([] if outside is None else [outside])]
        wanted = [True] * len(inside) + [False] * (len(automata) - len(inside))
        sets = [each for automaton in automata for each in automaton.sets]
        self._take(len(sets) * len(set(sets)))
        characters = representatives(sets)
        first = tuple(automaton.first for automaton in automata)
        # Not `first`: a later state of the same positions is no longer at the start of the text.
        seen: set[tuple[State, ...]] = set()
        waiting: deque[tuple[tuple[State, ...], str]] = deque([(first, "")])
        while waiting:
            states, text = waiting.popleft()
            self._take(sum(map(len, states)) + 1)
            pairs = list(zip(automata, states, wanted, strict=True))
            if all(automaton.is_match(state) is want for automaton, state, want in pairs):
                return text
            if any(not state if want else automaton.is_certain(state) for automaton, state, want in pairs):
                continue  # whatever follows, it is no such text
            self._take(len(characters) * (sum(map(len, states)) + 1))
            for character in characters:
                after = tuple(automaton.after(state, character) for automaton, state, _ in pairs)
                if after not in seen:
                    seen.add(after)
                    waiting.append((after, text + character))
        return None

    def _take(self, steps: int) -> None:
        """Spend some of the work.

        Raises `Undecided` where too little is left.
        """
        self._left -= steps
        if self._left < 0:
            raise Undecided


def _tree(keyword: str, value: JSON) -> Node:
    if keyword == "pattern":
        return read_pattern(cast("str", value))
    limit = int(cast("float", value))
    bounds = (limit, None) if keyword == "minLength" else (0, limit)
    return Series((Edge(is_start=True), Repeat(One(ANY), *bounds), Edge(is_start=False)))
