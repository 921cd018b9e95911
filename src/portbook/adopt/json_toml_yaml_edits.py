"""JSON with comments, TOML and YAML, edited in place: the rest of the text stays as it is. Pure: no I/O."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from portbook.apis.openapi.yaml_reader import NotYAML, parse_yaml
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern

__all__ = [
    "NotReadable",
    "edit_json",
    "edit_toml",
    "edit_yaml",
    "parse_json",
    "parse_yaml_text",
    "toml_value",
]

# Cuts in a text: spans that are taken out, or replaced.


class Cut(NamedTuple):
    """A span of a text, and what stands there instead."""

    start: int
    end: int
    text: str = ""


def apply_cuts(text: str, cuts: Iterable[Cut]) -> str:
    """Return a text with spans replaced, which do not overlap."""
    for cut in sorted(cuts, reverse=True):
        text = text[: cut.start] + cut.text + text[cut.end :]
    return text


def line_of(text: str, at: int) -> str:
    """Return what stands before a place in its line."""
    return text[text.rfind("\n", 0, at) + 1 : at]


def newline_of(text: str) -> str:
    """Return the line break that a text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def whole_lines(text: str, start: int, end: int, comma: int | None = None) -> Cut:
    """Return the cut of a span with the comma after it, and with its lines where nothing else is on them."""
    if comma is not None and not text[end:comma].strip():
        end = comma + 1
        between = ""
    else:
        between = "" if comma is None else text[end:comma]
        end = end if comma is None else comma + 1
    if between:  # a comment before the comma stays
        return Cut(start, end, between)
    before = line_of(text, start)
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop + 1
    if not before.strip() and not text[end:stop].strip():
        return Cut(start - len(before), stop)
    return Cut(start, end)


# JSON with comments and trailing commas: the place of every member, and edits there.

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
        cuts.append(Cut(first.start, first.value.end, _written_json(text, first, put)))
    cuts += [whole_lines(text, each.start, each.value.end, each.comma) for each in gone]
    last = place.members[-1]
    if last in gone and last.comma is None and kept:
        comma = max(kept, key=lambda each: each.start).comma
        assert comma is not None
        cuts.append(Cut(comma, comma + 1))
    return apply_cuts(text, cuts)


def _missing() -> _Value:
    raise NotReadable("it has no servers at the place where its client reads them")


def _written_json(text: str, first: _Member, put: Iterable[tuple[str, JSONObject]]) -> str:
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
    return _Value(at, found.end(), _json_scalar(text, found))


def _json_scalar(text: str, found: re.Match[str]) -> JSON:
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
        members.append(_Member(str(_json_scalar(text, key)), key.start(), value, comma))
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


# TOML tables by their headers, and a text with some of them replaced by one.
#
# Only tables that are written with headers of their own are found (`[mcp_servers.files]`), as their client
# writes them. The caller reads the result back, so a text in a different style is refused, not damaged.


# The start of a line that is a header of a table or of an array of tables.
_HEADER: Final = late_pattern(r"^[ \t]*\[(\[?)([^\n]*?)\]\]?[ \t]*(?:#[^\n]*)?\r?$")
_BARE: Final = late_pattern(r"[A-Za-z0-9_-]+")


def edit_toml(text: str, path: tuple[str, ...], remove: Collection[str], *put: tuple[str, JSONObject]) -> str:
    """Return the document without some tables below `path`, and with `put` in place of the first."""
    cuts: list[Cut] = []
    written = "\n".join(_written_toml(path, *each) for each in put).replace("\n", newline_of(text))
    for start, end in _tables(text, path, remove):
        is_open = written and text[end - 1 : end] != "\n"
        cuts.append(Cut(start, end, written.rstrip() if is_open else written))
        written = ""
    return apply_cuts(text, cuts)


def _tables(text: str, path: tuple[str, ...], names: Collection[str]) -> list[tuple[int, int]]:
    """Return the spans of the tables of some servers, with the tables below each."""
    spans: list[tuple[int, int]] = []
    begun: int | None = None
    after = 0  # the end of the last line that belongs to a table
    for at, line in _lines(text):
        keys = _keys(line)
        if keys is not None:
            if begun is not None:
                spans.append((begun, after))
            is_ours = keys[: len(path)] == path and len(keys) > len(path) and keys[len(path)] in names
            begun = at if is_ours else None
        # Comments and blank lines before the next header belong to it.
        if line.strip() and not line.lstrip().startswith("#"):
            after = at + len(line)
    if begun is not None:
        spans.append((begun, after))
    return spans


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the lines that are not inside of a text of several lines, each with its place."""
    found: list[tuple[int, str]] = []
    at, inside = 0, ""
    for line in text.splitlines(keepends=True):
        if inside:
            inside = "" if inside in line else inside
            found[-1] = (found[-1][0], found[-1][1] + line)
        else:
            found.append((at, line))
            inside = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
        at += len(line)
    return found


def _keys(line: str) -> tuple[str, ...] | None:
    """Return the keys of a table's header, or None for a line that is none."""
    found = _HEADER.match(line.rstrip("\n"))
    if found is None or "\n" in line.rstrip("\n"):
        return None
    try:
        value: JSON = tomllib.loads(f"[{found[2]}]")
    except tomllib.TOMLDecodeError:
        return None
    keys: list[str] = []
    while isinstance(value, dict) and value:
        (key, value), *_ = value.items()
        keys.append(key)
    return tuple(keys)


def _written_toml(path: tuple[str, ...], name: str, value: JSONObject) -> str:
    head = ".".join(map(_toml_key, (*path, name)))
    plain = {key: each for key, each in value.items() if not isinstance(each, dict)}
    lines = [f"[{head}]", *(f"{_toml_key(key)} = {toml_value(each)}" for key, each in plain.items())]
    for key, each in value.items():
        if isinstance(each, dict):
            lines += ["", f"[{head}.{_toml_key(key)}]"]
            lines += [f"{_toml_key(inner)} = {toml_value(item)}" for inner, item in each.items()]
    return "\n".join(lines) + "\n"


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_value(value: JSON) -> str:
    """Return a text, a number, a list or a table as TOML, on one line."""
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{_toml_key(key)} = {toml_value(each)}" for key, each in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    # JSON escapes are TOML's, but for the delete character, which TOML does not allow as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# YAML in blocks, by indentation, and a text with some entries replaced by one.
#
# Entries are found where they are written as clients write them: a mapping or a list in block style, one
# key a line. The caller reads the result back, so a text in a different style is refused, not damaged.

_KEY: Final = late_pattern(
    r"""(?P<indent> *)(?P<dash>- +)?(?P<key>"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#:'"-][^:#]*?) *:(?=\s|$)"""
)
_NAME: Final = late_pattern(r"(?P<indent> *)(?:- +)?name *: *(?P<value>[^#\n]*?)\s*(?:#.*)?$")


class _Line(NamedTuple):
    start: int
    text: str

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip(" "))

    @property
    def is_empty(self) -> bool:
        stripped = self.text.strip()
        return not stripped or stripped.startswith("#")


def parse_yaml_text(text: str) -> JSON:
    """Return the values of a document. Raises `NotReadable` where it cannot be read."""
    try:
        return parse_yaml(text.encode()) if text.strip() else {}
    except NotYAML as error:
        raise NotReadable(str(error)) from None
    except ImportError:
        raise NotReadable("YAML needs a library; install portbook[yaml]") from None


def edit_yaml(text: str, path: tuple[str, ...], remove: Collection[str], *put: tuple[str, JSONObject]) -> str:
    """Return the document without some entries at `path`, and with `put` in place of the first.

    Raises `NotReadable` where the place is not found.
    """
    lines = [_Line(at, line) for at, line in _with_places(text)]
    block = _block(lines, path)
    cuts: list[Cut] = []
    is_whole = all(name in remove for name, _ in _entries(block))
    for name, entry in _entries(block):
        if name not in remove:
            continue
        start, end = entry[0].start, entry[-1].start + len(entry[-1].text)
        if put and not cuts:
            ending = "" if text[end - 1 : end] != "\n" else newline_of(text)
            written = newline_of(text).join(_written_yaml(entry[0], *each, newline_of(text)) for each in put)
            cuts.append(Cut(start, end, written + ending))
        else:
            cuts.append(Cut(start, end))
    if not put and is_whole and cuts:
        raise NotReadable("nothing would be left of its list of servers; remove the entry by hand")
    return apply_cuts(text, cuts)


def _with_places(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        yield at, line
        at += len(line)


def _block(lines: list[_Line], path: tuple[str, ...]) -> list[_Line]:
    """Return the lines below a key."""
    for key in path:
        top = min((line.indent for line in lines if not line.is_empty), default=0)
        begins = [at for at, line in enumerate(lines) if line.indent == top and _yaml_key(line) == key]
        if len(begins) != 1:
            raise NotReadable("it has no servers at the place where its client reads them")
        lines = _below(lines, begins[0])
    return lines


def _below(lines: list[_Line], at: int) -> list[_Line]:
    """Return the lines that belong to a key; the items of its list may stand at its own indentation."""
    indent = lines[at].indent
    found: list[_Line] = []
    for line in lines[at + 1 :]:
        is_item = line.indent == indent and line.text.lstrip(" ").startswith("- ")
        if not line.is_empty and line.indent <= indent and not is_item:
            break
        found.append(line)
    return found


def _entries(block: list[_Line]) -> Iterator[tuple[str, list[_Line]]]:
    """Yield each entry with its lines, without comments and blank lines after it."""
    full = [line for line in block if not line.is_empty]
    top = full[0].indent if full else 0
    begins = [at for at, line in enumerate(block) if not line.is_empty and line.indent == top]
    for begin, end in zip(begins, [*begins[1:], len(block)], strict=False):
        entry = block[begin:end]
        while entry[-1].is_empty:
            entry = entry[:-1]
        yield _name(entry), entry


def _name(entry: list[_Line]) -> str:
    if not entry[0].text.lstrip(" ").startswith("- "):
        return _yaml_key(entry[0]) or ""
    inner = entry[0].indent + 2
    for line in entry:
        found = _NAME.match(line.text)
        if found and (line is entry[0] or line.indent >= inner):
            return _yaml_scalar(found["value"])
    return ""


def _yaml_key(line: _Line) -> str | None:
    found = None if line.is_empty else _KEY.match(line.text)
    return None if found is None or found["dash"] else _yaml_scalar(found["key"])


def _yaml_scalar(text: str) -> str:
    try:
        value = parse_yaml(text.encode())
    except NotYAML:
        return text
    return value if isinstance(value, str) else text.strip()


def _written_yaml(first: _Line, name: str, value: JSONObject, newline: str) -> str:
    """Return an entry as text, indented as the one that it replaces; inner values are in JSON's style."""
    indent = " " * first.indent
    is_item = first.text.lstrip(" ").startswith("- ")
    members = [f"{key}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
    if is_item:
        lines = [f"{indent}{'- ' if not at else '  '}{member}" for at, member in enumerate(members)]
    else:
        lines = [f"{indent}{json.dumps(name)}:", *(f"{indent}  {member}" for member in members)]
    return newline.join(lines)
