"""`Automaton`: which texts a regular expression matches, read character by character. Pure: no I/O.

A state is the set of positions in the pattern that the text so far can have led to. As in JSON Schema, a
pattern matches anywhere in a text unless it says where.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from portbook.assets.compat.pattern_syntax import (
    CharacterSet,
    Choice,
    Edge,
    Node,
    One,
    Repeat,
    Series,
    Unreadable,
)

__all__ = ["Automaton", "State"]

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
