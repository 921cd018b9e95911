r"""Patterns by the texts that they match: one that some match and another does not, or none. Pure: no I/O.

Lengths count as patterns, too: `minLength` 2 is `^[\s\S]{2,}$`.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, cast

from portbook.assets.compat.pattern_syntax import (
    ANY,
    CharacterSet,
    Choice,
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

__all__ = ["Automaton", "State", "TextLanguages", "Undecided"]


State: TypeAlias = "frozenset[int]"

# Counted repetitions turn short patterns into many positions.
_MAX_POSITIONS: Final = 2_000

# The position at which the pattern has matched; whatever follows, the text is a match.
_MATCHED: Final = 0
_BEGIN: Final = 1


class Automaton:
    """The texts that one pattern matches."""

    def __init__(self, tree: Node) -> None:
        """Build it from the tree of a pattern.

        Raises `Unreadable` where the pattern has too many positions.
        """
        # For each position: the characters that lead on, and the steps that need none.
        self._by_character: list[list[tuple[CharacterSet, int]]] = [[], []]
        self._freely: list[list[int]] = [[], []]
        self._at_start: list[list[int]] = [[], []]
        self._at_end: list[list[int]] = [[], []]
        self._add(tree, _BEGIN, _MATCHED)
        self._next: dict[tuple[State, str], State] = {}
        self._again = self._reached({_BEGIN})
        self.first = self._reached({_BEGIN}, is_start=True)
        """The state before the first character."""

    @property
    def sets(self) -> list[CharacterSet]:
        """The sets of characters that the pattern tells apart."""
        return [characters for steps in self._by_character for characters, _ in steps]

    def after(self, state: State, character: str) -> State:
        """Return the state after one more character."""
        if _MATCHED in state:
            return state
        if (state, character) not in self._next:
            code = ord(character)
            led = {
                position
                for here in state
                for characters, position in self._by_character[here]
                if any(first <= code <= last for first, last in characters)
            }
            self._next[state, character] = self._reached(led) | self._again
        return self._next[state, character]

    def is_match(self, state: State) -> bool:
        """Return whether a text that ends in `state` is a match."""
        return _MATCHED in self._reached(state, is_start=state is self.first, is_end=True)

    def is_certain(self, state: State) -> bool:
        """Return whether every text that begins so is a match."""
        return _MATCHED in state

    def _reached(self, positions: set[int] | State, *, is_start: bool = False, is_end: bool = False) -> State:
        """Return the positions that need no character to be reached, but for those that lead nowhere."""
        found: set[int] = set()
        waiting = list(positions)
        while waiting:
            position = waiting.pop()
            if position not in found:
                found.add(position)
                waiting += self._freely[position]
                waiting += self._at_start[position] if is_start else []
                waiting += self._at_end[position] if is_end else []
        return frozenset(each for each in found if self._leads_on(each))

    def _leads_on(self, position: int) -> bool:
        return position == _MATCHED or bool(self._by_character[position] or self._at_end[position])

    def _position(self) -> int:
        if len(self._freely) >= _MAX_POSITIONS:
            raise Unreadable
        for steps in (self._by_character, self._freely, self._at_start, self._at_end):
            steps.append([])
        return len(self._freely) - 1

    def _add(self, node: Node, here: int, there: int) -> None:
        """Lead from `here` to `there` by everything that `node` matches."""
        match node:
            case One(characters):
                self._by_character[here].append((characters, there))
            case Edge(is_start):
                (self._at_start if is_start else self._at_end)[here].append(there)
            case Choice(parts):
                for part in parts:
                    self._add(part, here, there)
            case Series(parts):
                for part in parts:
                    after = self._position()
                    self._add(part, here, after)
                    here = after
                self._freely[here].append(there)
            case Repeat():
                self._add_repeat(node, here, there)

    def _add_repeat(self, node: Repeat, here: int, there: int) -> None:
        for _ in range(node.least):
            after = self._position()
            self._add(node.part, here, after)
            here = after
        if node.most is None:
            # A position of its own: a step back must not reach what comes before the repetition.
            loop = self._position()
            self._freely[here].append(loop)
            self._add(node.part, loop, loop)
            here = loop
        for _ in range(0 if node.most is None else node.most - node.least):
            self._freely[here].append(there)
            after = self._position()
            self._add(node.part, here, after)
            here = after
        self._freely[here].append(there)


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
