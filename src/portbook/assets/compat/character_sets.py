"""Sets of characters as ranges of code points, in order and without overlap. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

__all__ = ["ANY", "CLASSES", "CharacterSet", "complement", "representatives", "union"]

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
