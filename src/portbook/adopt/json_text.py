"""JSON with comments and trailing commas: the place of every member, and edits there. Pure: no I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from portbook.adopt.text_cut import Cut, apply_cuts, line_of, newline_of, whole_lines
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern

__all__ = ["NotReadable", "edit_json", "parse_json"]

_BLANK: Final = late_pattern(r"(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING: Final = late_pattern(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_WORD: Final = late_pattern(r"-?[0-9][0-9eE+.\-]*+|true|false|null")
_MAX_DEPTH: Final = 200


class NotReadable(Exception):
    """A document that cannot be read or edited; the message says why, without a value of it."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object, or an item of a list, with its place."""

    name: str
    start: int
    value: _Value
    comma: int | None
    """Where the comma after it is."""


@dataclass(frozen=True, slots=True)
class _Value:
    start: int
    end: int
    value: JSON
    members: tuple[_Member, ...] = field(default=())


def parse_json(text: str) -> JSON:
    """Return the value of a document. Raises `NotReadable` where it is none."""
    return _document(text).value


def edit_json(text: str, path: tuple[str, ...], remove: Collection[str], *put: tuple[str, JSONObject]) -> str:
    """Return the document without some members of the object at `path`, and with `put` in place of the first.

    Raises `NotReadable` where there is no such object.
    """
    place = _document(text)
    for key in path:
        place = next((each.value for each in place.members if each.name == key), None) or _missing()
    gone = [each for each in place.members if each.name in remove]
    if not gone:
        raise NotReadable("it has none of these servers")
    cuts: list[Cut] = []
    kept = [each for each in place.members if each.name not in remove]
    if put:
        first, *gone = gone
        kept = [*kept, first]
        cuts.append(Cut(first.start, first.value.end, _written(text, first, put)))
    cuts += [whole_lines(text, each.start, each.value.end, each.comma) for each in gone]
    last = place.members[-1]
    if last in gone and last.comma is None and kept:
        comma = max(kept, key=lambda each: each.start).comma
        assert comma is not None
        cuts.append(Cut(comma, comma + 1))
    return apply_cuts(text, cuts)


def _missing() -> _Value:
    raise NotReadable("it has no servers at the place where its client reads them")


def _written(text: str, first: _Member, put: Iterable[tuple[str, JSONObject]]) -> str:
    """Return members as text, in the style of the one that they replace."""
    before = line_of(text, first.start)
    if before.strip():  # not at the start of its line: all on one line
        return ", ".join(_member_text(*each) for each in put)
    unit = _unit(text, first, before)
    members = (_member_text(*each, unit) for each in put)
    return ",\n".join(members).replace("\n", newline_of(text) + before)


def _member_text(name: str, value: JSONObject, unit: str | None = None) -> str:
    return f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False, indent=unit)}"


def _unit(text: str, first: _Member, before: str) -> str:
    """Return the indentation of one level: how much deeper the members of the replaced entry stand."""
    if first.value.members:
        deeper = line_of(text, first.value.members[0].start)
        if not deeper.strip() and deeper.startswith(before) and len(deeper) > len(before):
            return deeper[len(before) :]
    return "\t" if before.startswith("\t") else "  "


# -- reading


def _document(text: str) -> _Value:
    at = _skip(text, 0)
    found = _value(text, at, 0)
    if _skip(text, found.end) != len(text):
        raise _wrong(text, found.end)
    return found


def _wrong(text: str, at: int) -> NotReadable:
    line = text.count("\n", 0, at) + 1
    return NotReadable(f"line {line} is not JSON")


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int, depth: int) -> _Value:
    opening = text[at : at + 1]
    if depth > _MAX_DEPTH:
        raise NotReadable("it is nested too deeply")
    if opening == "{":
        return _object(text, at, depth)
    if opening == "[":
        return _list(text, at, depth)
    found = _STRING.match(text, at) or _WORD.match(text, at)
    if found is None:
        raise _wrong(text, at)
    return _Value(at, found.end(), _scalar(text, found))


def _scalar(text: str, found: re.Match[str]) -> JSON:
    try:
        return json.loads(found[0])
    except ValueError:
        raise _wrong(text, found.start()) from None


def _object(text: str, start: int, depth: int) -> _Value:
    members: list[_Member] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if members and members[-1].comma is None:
            raise _wrong(text, at)
        key = _STRING.match(text, at)
        if key is None:
            raise _wrong(text, at)
        colon = _skip(text, key.end())
        if text[colon : colon + 1] != ":":
            raise _wrong(text, colon)
        value = _value(text, _skip(text, colon + 1), depth + 1)
        at, comma = _after(text, value.end)
        members.append(_Member(str(_scalar(text, key)), key.start(), value, comma))
    found = {each.name: each.value.value for each in members}
    if len(found) < len(members):
        raise NotReadable("an object in it has the same key twice")
    return _Value(start, at + 1, found, tuple(members))


def _list(text: str, start: int, depth: int) -> _Value:
    items: list[JSON] = []
    at, comma = _skip(text, start + 1), 0
    while text[at : at + 1] != "]":
        if items and comma is None:
            raise _wrong(text, at)
        value = _value(text, at, depth + 1)
        at, comma = _after(text, value.end)
        items.append(value.value)
    return _Value(start, at + 1, items)


def _after(text: str, end: int) -> tuple[int, int | None]:
    """Return where the next member begins, and the place of the comma before it."""
    at = _skip(text, end)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1), at
    return at, None
