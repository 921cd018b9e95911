"""A definition before and after, side by side. Nothing is cut off: whoever approves has to see all of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

import click

from portbook.cli.reports import width_of
from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, JSONObject
from portbook.pins.compared_parts import compared_parts

__all__ = ["side_by_side"]

_LEAST_ROOM: Final = 20
_BETWEEN: Final = " │ "


def side_by_side(approved: JSONObject | None, observed: JSONObject | None) -> Iterator[str]:
    """Yield the lines that show what differs between two definitions, part by part."""
    room = max((shutil.get_terminal_size().columns - len(_BETWEEN)) // 2, _LEAST_ROOM)
    for compared in compared_parts(approved, observed):
        yield click.style(escaped(compared.part), bold=True)
        for place in compared.places:
            if place.pointer:
                yield escaped(place.pointer, limit=10 * len(place.pointer) + 1)
            yield from _columns(_lines(place.before), _lines(place.after), room)


def _lines(value: JSON) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [escaped(line, limit=10 * len(line) + 1) for line in value.split("\n")]
    return escaped_json(json.dumps(value, indent=2, ensure_ascii=False)).split("\n")


def _columns(left: list[str], right: list[str], room: int) -> Iterator[str]:
    cells = zip_longest(_wrapped(left, room), _wrapped(right, room), fillvalue="")
    for ours, theirs in cells:
        gap = " " * (room - width_of(ours))
        new = _BETWEEN + click.style(theirs, fg="green") if theirs else _BETWEEN.rstrip()
        yield click.style(ours, fg="red") + gap + new


def _wrapped(lines: list[str], room: int) -> list[str]:
    return [piece for line in lines for piece in _pieces(line, room)]


def _pieces(line: str, room: int) -> Iterator[str]:
    """Yield a line in pieces of at most `room` columns."""
    piece, width = "", 0
    for character in line:
        more = width_of(character)
        if width + more > room:
            yield piece
            piece, width = "", 0
        piece, width = piece + character, width + more
    yield piece
