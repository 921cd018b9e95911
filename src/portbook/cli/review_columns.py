"""A definition before and after, side by side. Nothing is cut off: whoever approves has to see all of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

import click

from portbook.assets.json_patch import diff
from portbook.cli.reports import width_of
from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, JSONObject
from portbook.pins.definition_parts import is_same_part

__all__ = ["compared_parts"]

_LEAST_ROOM: Final = 20
_BETWEEN: Final = " │ "


def compared_parts(approved: JSONObject | None, observed: JSONObject | None) -> Iterator[str]:
    """Yield the lines that show what differs between two definitions, part by part."""
    before, after = approved or {}, observed or {}
    room = max((shutil.get_terminal_size().columns - len(_BETWEEN)) // 2, _LEAST_ROOM)
    for part in sorted(before.keys() | after.keys()):
        if is_same_part(before.get(part), after.get(part)):
            continue
        yield click.style(escaped(part), bold=True)
        for place, left, right in _changes(before.get(part), after.get(part)):
            if place:
                yield escaped(place, limit=10 * len(place) + 1)
            yield from _side_by_side(left, right, room)


def _changes(before: JSON, after: JSON) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the places that differ, each with the lines of both sides."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        yield "", _lines(before), _lines(after)
        return
    for operation in diff(before, after):
        path = str(operation["path"])
        left = [] if operation["op"] == "add" else _lines(_value(before, path))
        right = [] if operation["op"] == "remove" else _lines(operation["value"])
        yield path, left, right


def _lines(value: JSON) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [escaped(line, limit=10 * len(line) + 1) for line in value.split("\n")]
    return escaped_json(json.dumps(value, indent=2, ensure_ascii=False)).split("\n")


def _side_by_side(left: list[str], right: list[str], room: int) -> Iterator[str]:
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


def _value(document: JSON, path: str) -> JSON:
    for step in path.split("/")[1:]:
        assert isinstance(document, dict)  # a patch has no paths into lists
        document = document[step.replace("~1", "/").replace("~0", "~")]
    return document
