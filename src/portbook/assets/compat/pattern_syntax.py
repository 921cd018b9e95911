"""Reads a regular expression into a tree, for the part of the syntax that describes a regular language.

Only what every engine reads alike is read; all other syntax is `Unreadable`: look-around, back-references,
flags, word boundaries, classes by property, nested classes. Pure: no I/O.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

__all__ = [
    "ANY",
    "CLASSES",
    "CharacterSet",
    "Choice",
    "Edge",
    "Node",
    "One",
    "Repeat",
    "Series",
    "Unreadable",
    "complement",
    "read_pattern",
    "representatives",
    "union",
]

# Sets of characters as ranges of code points, in order and without overlap.

CharacterSet: TypeAlias = "tuple[tuple[int, int], ...]"

_LAST: Final = 0x10FFFF

# No JSON text holds these.
_SURROGATES: Final = (0xD800, 0xDFFF)

# The characters that a witness is made of, where there is a choice: those that people read best first.
_READABLE: Final = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_ .:/@"


def union(*sets: CharacterSet) -> CharacterSet:
    """Return the characters of any of these sets."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(part for each in sets for part in each):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(characters: CharacterSet) -> CharacterSet:
    """Return all other characters."""
    others: list[tuple[int, int]] = []
    start = 0
    for first, last in union(characters):
        if start < first:
            others.append((start, first - 1))
        start = last + 1
    return tuple([*others, (start, _LAST)] if start <= _LAST else others)


def _set(*ranges: str) -> CharacterSet:
    return union(tuple((ord(each[0]), ord(each[-1])) for each in ranges))


ANY: Final[CharacterSet] = ((0, _LAST),)

_DIGITS: Final = _set("09")
_WORD: Final = _set("09", "AZ", "__", "az")
_SPACES: Final = _set(
    "\t\r", " ", "\xa0", "\u1680", "\u2000\u200a", "\u2028\u2029", "\u202f", "\u205f", "\u3000", "\ufeff"
)

# The classes as the validator's engine reads them.
CLASSES: Final[dict[str, CharacterSet]] = {
    "d": _DIGITS,
    "D": complement(_DIGITS),
    "w": _WORD,
    "W": complement(_WORD),
    "s": _SPACES,
    "S": complement(_SPACES),
    ".": complement(_set("\n")),
}


def representatives(sets: Iterable[CharacterSet]) -> list[str]:
    """Return one character for each way to be in some of these sets and not in the others."""
    distinct = list(dict.fromkeys(sets))
    edges = sorted({0} | {edge for each in distinct for first, last in each for edge in (first, last + 1)})
    candidates = [*map(ord, _READABLE), *edges, _SURROGATES[1] + 1]
    found: dict[tuple[bool, ...], str] = {}
    for code in candidates:
        if code <= _LAST and not _SURROGATES[0] <= code <= _SURROGATES[1]:
            found.setdefault(tuple(_holds(each, code) for each in distinct), chr(code))
    return list(found.values())


def _holds(characters: CharacterSet, code: int) -> bool:
    return any(first <= code <= last for first, last in characters)


class Unreadable(Exception):
    """A pattern with syntax that is not read here."""


class One(NamedTuple):
    """One character of a set."""

    characters: CharacterSet


class Edge(NamedTuple):
    """The start of the text, or its end."""

    is_start: bool


class Series(NamedTuple):
    """Parts that follow each other."""

    parts: tuple[Node, ...]


class Choice(NamedTuple):
    """Any one of several parts."""

    parts: tuple[Node, ...]


class Repeat(NamedTuple):
    """A part, `least` to `most` times; without `most`, any number of times from `least`."""

    part: Node
    least: int
    most: int | None


Node: TypeAlias = "One | Edge | Series | Choice | Repeat"

_QUANTIFIER: Final = re.compile(r"([*+?]|\{(\d{1,6})(,(\d{0,6}))?\})(\??)")
_BOUNDS: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_CODE: Final = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}

# In a class, engines differ on what these mean.
_DOUBTFUL: Final = ("[", "&&", "--", "~~")

# Deeper nested groups than in any real pattern.
_MAX_DEPTH: Final = 50


def read_pattern(pattern: str) -> Node:
    """Return the tree of a pattern that the validator's engine accepts.

    Raises `Unreadable` where it has syntax that is not read here.
    """
    reader = _PatternReader(pattern)
    tree = reader.choice(0)
    if reader.at < len(pattern):
        raise Unreadable
    return tree


class _PatternReader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0

    def choice(self, depth: int) -> Node:
        """Read alternatives, up to the end of their group."""
        if depth > _MAX_DEPTH:
            raise Unreadable
        ways = [self._row(depth)]
        while self._takes("|"):
            ways.append(self._row(depth))
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def _row(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._here() not in ("", "|", ")"):
            part = self._part(depth)
            found = _QUANTIFIER.match(self._pattern, self.at)
            if found is not None:
                self.at = found.end()
                if isinstance(part, Edge) or _QUANTIFIER.match(self._pattern, self.at) is not None:
                    raise Unreadable
                part = Repeat(part, *_bounds(found))
            parts.append(part)
        return Series(tuple(parts))

    def _part(self, depth: int) -> Node:
        if self._takes("("):
            if self._here() == "?" and not self._takes("?:"):
                raise Unreadable
            group = self.choice(depth + 1)
            if not self._takes(")"):
                raise Unreadable
            return group
        if self._takes("["):
            return One(self._class())
        if self._takes("\\"):
            return One(self._escape())
        character = self._next()
        if character in "^$":
            return Edge(character == "^")
        if character in "*+?{}]":
            raise Unreadable
        return One(CLASSES["."] if character == "." else _only(character))

    def _class(self) -> CharacterSet:
        is_negated = self._takes("^")
        if self._here() == "]":  # a class without members, or one that begins with the bracket
            raise Unreadable
        sets: list[CharacterSet] = []
        while not sets or not self._takes("]"):
            if any(self._pattern.startswith(each, self.at) for each in _DOUBTFUL):
                raise Unreadable
            first = self._member()
            if self._here() == "-" and self._pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                first = _range(first, self._member())
            sets.append(first)
        members = union(*sets)
        return complement(members) if is_negated else members

    def _member(self) -> CharacterSet:
        return self._escape() if self._takes("\\") else _only(self._next())

    def _escape(self) -> CharacterSet:
        code = _CODE.match(self._pattern, self.at)
        if code is not None:
            self.at = code.end()
            return _only(chr(int(code[1] or code[2], 16)))
        character = self._next()
        if character in CLASSES and character != ".":
            return CLASSES[character]
        if character in _CONTROLS:
            return _only(_CONTROLS[character])
        if character in string.punctuation:
            return _only(character)
        raise Unreadable

    def _here(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def _next(self) -> str:
        if not self._here():
            raise Unreadable
        self.at += 1
        return self._pattern[self.at - 1]

    def _takes(self, text: str) -> bool:
        """Go on past `text` if it is next."""
        is_next = self._pattern.startswith(text, self.at)
        self.at += len(text) if is_next else 0
        return is_next


def _only(character: str) -> CharacterSet:
    return ((ord(character), ord(character)),)


def _range(first: CharacterSet, last: CharacterSet) -> CharacterSet:
    is_plain = len(first) == len(last) == 1 and first[0][0] == first[0][1] and last[0][0] == last[0][1]
    if not is_plain or first[0][0] > last[0][0]:
        raise Unreadable
    return ((first[0][0], last[0][0]),)


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    if found[1] in _BOUNDS:
        return _BOUNDS[found[1]]
    least = int(found[2])
    if found[3] is None:
        return least, least
    return least, int(found[4]) if found[4] else None
