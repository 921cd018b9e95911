"""Selects an excerpt of a section that shows why it was found.

A snippet is plain text on one line, truncated between words where possible, with ellipses where it was
truncated. FTS5's own function for this is quadratic in the number of matches: minutes for one large file.
This one is linear. Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import Final, TypeAlias

__all__ = ["Tokens", "snippet"]

Tokens: TypeAlias = "Callable[[bytes], list[tuple[int, int, str]]]"
"""Returns the words of a UTF-8 text: the start and end of each, in bytes, and its stem."""

# Two or three lines of a terminal; a quarter of it comes before the match.
_MAX_CHARS: Final = 240
_LEAD_CHARS: Final = _MAX_CHARS // 4

# A body is searched in pieces that end between words, up to the first piece with a match.
_PIECE = re.compile(r".{1,16384}(?!\S)|.{1,16384}", re.DOTALL)


def snippet(body: str, stems: Container[str], tokens: Tokens) -> str:
    """Return the part of `body` where most of `stems` are close together; its start if it has none."""
    for piece in _PIECE.finditer(body):
        raw = piece[0].encode()
        place = _place(raw, stems, tokens)
        if place is not None:
            return _excerpt(body, piece.start() + len(raw[:place].decode()))
    return _excerpt(body, 0)


def _place(raw: bytes, stems: Container[str], tokens: Tokens) -> int | None:
    most, place = 0, None
    last: dict[str, int] = {}
    for start, _, stem in tokens(raw):
        if stem in stems:
            last[stem] = start
            near = [at for at in last.values() if start - at < _MAX_CHARS - _LEAD_CHARS]
            if len(near) > most:
                most, place = len(near), min(near)
    return place


def _excerpt(body: str, place: int) -> str:
    # Four times as much as needed, because runs of white space are collapsed.
    first, last = max(0, place - 4 * _MAX_CHARS), place + 4 * _MAX_CHARS
    # A mark at the place lets white space around it collapse too; no section contains a NUL.
    before, _, after = " ".join(f"{body[first:place]}\0{body[place:last]}".split()).partition("\0")
    line, at, room = before + after, len(before), _MAX_CHARS - len("……")
    start = max(0, min(at - _LEAD_CHARS, len(line) - room))
    if start:
        start = line.find(" ", start, at) + 1 or start
    end = start + room
    if end < len(line):
        end = line.rfind(" ", at, end + 1) if " " in line[at : end + 1] else end
    lead = "…" if first or start else ""
    tail = "…" if last < len(body) or end < len(line) else ""
    return lead + line[start:end] + tail
