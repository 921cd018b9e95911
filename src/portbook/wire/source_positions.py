"""Finds the line, column and length of a value in a JSON source by its JSON Pointer. Pure: no I/O.

The source must be valid JSON; it is scanned once, without recursion.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

__all__ = ["Span", "locate", "name_before", "span_at"]

_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s\[\]{}:,"]++')

# The part of a source line that is shown around a value.
_MAX_WIDTH: Final = 100
_BEFORE: Final = 40


class Span(NamedTuple):
    """The place of a value: its line and column, counted from 1, and the text of the line to show."""

    line: int
    column: int
    text: str
    """The line, truncated where it is long, with a dot for each unprintable character."""
    offset: int
    """The index in `text` at which the value starts."""
    width: int
    """The number of characters of `text` that it takes."""
    length: int
    """The number of characters that it takes in the source."""


def locate(source: str, pointers: Collection[str], *, are_names: bool = False) -> dict[str, Span]:
    """Return the places of the values at `pointers`; the start of `source` where it has no such value.

    With `are_names`, return the places of the member names of those values.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", source))]
    found = _find(source, pointers, are_names=are_names)
    first = _TOKEN.search(source)
    whole = first.start() if first else 0
    spans: dict[str, Span] = {}
    for pointer in pointers:
        start, end = found.get(pointer, (whole, whole + 1))
        line = bisect_right(starts, start)
        stop = starts[line] - 1 if line < len(starts) else len(source)
        text = source[starts[line - 1] : stop]
        spans[pointer] = _span(text.rstrip("\r"), line, start - starts[line - 1], end - start)
    return spans


def span_at(source: str, line: int, column: int) -> Span:
    """Return the place of one character, for a source that is not JSON."""
    lines = source.split("\n")
    text = lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else ""
    return _span(text, line, max(column - 1, 0), 1)


def name_before(source: str, line: int, column: int) -> Span:
    """Return the place of the last string that ends before a character: the name whose value follows."""
    lines = source.split("\n")
    stop = sum(len(each) + 1 for each in lines[: line - 1]) + column
    name: re.Match[str] | None = None
    for token in _TOKEN.finditer(source, 0, stop):
        if token[0].startswith('"'):
            name = token
    if name is None:
        return span_at(source, line, column)
    start = source.rfind("\n", 0, name.start()) + 1
    row = source.count("\n", 0, start)
    return _span(lines[row].rstrip("\r"), row + 1, name.start() - start, len(name[0]))


def _span(text: str, line: int, offset: int, width: int) -> Span:
    start = max(offset - _BEFORE, 0) if len(text) > _MAX_WIDTH else 0
    shown = text[start : start + _MAX_WIDTH]
    length = max(width, 1)
    width = max(min(width, len(shown) - (offset - start)), 1)
    column = offset + 1
    if start:
        shown, offset = "…" + shown, offset + 1
    if start + _MAX_WIDTH < len(text):
        shown += "…"
    shown = "".join(character if character.isprintable() else "·" for character in shown)
    return Span(line, column, shown, offset - start, width, length)


class _WantedPositions:
    """A position that is wanted, or has wanted positions below it."""

    __slots__ = ("below", "pointer")

    def __init__(self) -> None:
        self.below: dict[str, _WantedPositions] = {}
        self.pointer: str | None = None


def _tree(pointers: Iterable[str]) -> _WantedPositions:
    root = _WantedPositions()
    for pointer in pointers:
        place = root
        for step in pointer.split("/")[1:]:
            place = place.below.setdefault(step.replace("~1", "/").replace("~0", "~"), _WantedPositions())
        place.pointer = pointer
    return root


def _find(source: str, wanted: Collection[str], *, are_names: bool) -> dict[str, tuple[int, int]]:
    """Return the spans of the wanted values or names; that of a container is its opening bracket."""
    found: dict[str, tuple[int, int]] = {}
    root = _tree(wanted)
    # For every open container: the positions wanted in it, and the next index or, in an object, the name just
    # read. Pointers are not built: each would repeat all names above it.
    open_places: list[_WantedPositions | None] = []
    names: list[int | str | None] = []
    for match in _TOKEN.finditer(source):
        piece = match[0]
        if piece in "]}":
            open_places.pop()
            names.pop()
        elif piece == ",":
            name = names[-1]
            names[-1] = name + 1 if isinstance(name, int) else None
        elif piece == ":":
            continue
        elif names and names[-1] is None:
            here = open_places[-1]
            names[-1] = name = json.loads(piece) if here is not None else ""
            named = here.below.get(name) if here is not None else None
            if are_names and named is not None and named.pointer is not None:
                found[named.pointer] = match.span()
        else:
            place = root if not names else open_places[-1] and open_places[-1].below.get(str(names[-1]))
            if not are_names and place is not None and place.pointer is not None:
                found[place.pointer] = match.span()
            if piece in "[{":
                open_places.append(place)
                names.append(0 if piece == "[" else None)
    return found
