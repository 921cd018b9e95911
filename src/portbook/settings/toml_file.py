"""A TOML file as values, with the place of each key in messages: its line and column."""

from __future__ import annotations

import contextlib
import re
from itertools import count
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

from portbook.settings.bad_settings import BadSettings
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = ["Path", "TomlFile", "TomlPositions", "parse_toml", "read_toml"]

# The parser's words, and what to do about them; the first that fits counts.
_REMEDIES: Final = (
    ("Invalid value", "write strings in quotes, lists in [ ], and true or false in lower case"),
    ("Invalid statement", "write key = value, or [table]"),
    ("Invalid initial character for a key part", "write keys with A-Z, a-z, 0-9, _ and -, or in quotes"),
    ("Expected '='", "write key = value"),
    ("Expected newline", "start a new line here, or write strings in quotes"),
    ("Expected ']", "close the header with ], or ]] for a list of tables"),
    ('Expected "\'"', "close the string with a quote"),
    ("Cannot overwrite", "the key is set above; keep one of the two"),
    ("Duplicate inline table key", "keep one of the two"),
    ("Cannot declare", "the table is declared above; keep all of its keys under one header"),
    ("Cannot redefine", "the table is declared above; keep all of its keys under one header"),
    ("Cannot mutate", "what stands in { } is complete; write the key into it"),
    ("Unclosed array", "close the list with ]"),
    ("Unclosed inline table", "close the table with }"),
    ("Unescaped '\\'", "write \\\\, or use single quotes, in which \\ stands for itself"),
    ("Illegal character", "close the string with a quote on its own line"),
    ("Unterminated string", "close the string with a quote"),
)
_PLACE: Final = late_pattern(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_MARK: Final = "\ufeff"
# A parser gives up far beyond it.
_DEEP: Final = 100


class TomlFile(NamedTuple):
    """What a file holds, and where."""

    shown: str
    """The file's name in messages."""
    document: dict[str, Any]
    positions: TomlPositions

    def place(self, path: Path) -> str:
        """Return the place of a key for messages: file, line and column."""
        return f"{self.shown}:{self.positions.of(path)}"

    def line(self, path: Path) -> int:
        """Return the line of a key."""
        return self.positions.of(path).line


def read_toml(path: FilePath, shown: str) -> TomlFile:
    """Read the file at `path`, which messages call `shown`.

    Raises `BadSettings` where it cannot be read or is not TOML, with line and column.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadSettings(
            f"{shown}: cannot be read: {error.strerror}; check its path and its rights"
        ) from None
    return parse_toml(_decoded(data, shown), shown)


def parse_toml(text: str, shown: str) -> TomlFile:
    """Return what a text holds, which messages call `shown`.

    Raises `BadSettings` where it is not TOML, with line and column.
    """
    import tomllib  # late: only where there is a file

    try:
        return TomlFile(shown, tomllib.loads(text), TomlPositions(text))
    except RecursionError:
        raise BadSettings(f"{shown}:{_too_deep(text)}: nested too deeply; use tables with headers") from None
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(_explained(str(error), text, shown)) from None


def _decoded(data: bytes, shown: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8")) + 1
        line = before.count(b"\n") + 1
        raise BadSettings(f"{shown}:{line}:{column}: not UTF-8; save the file as UTF-8") from None
    if text.startswith(_MARK):
        raise BadSettings(f"{shown}:1:1: begins with a byte order mark; save the file as UTF-8 without one")
    return text.replace("\r\n", "\n")


def _explained(words: str, text: str, shown: str) -> str:
    """Return the parser's words with their place first and a remedy last."""
    found = _PLACE.search(words)
    said = words[: found.start()] if found else words
    lines = text.split("\n")
    place = f"{found[1]}:{found[2]}" if found and found[1] else f"{len(lines)}:{len(lines[-1]) + 1}"
    remedy = next(
        (remedy for begin, remedy in _REMEDIES if said.startswith(begin)), "see the TOML specification"
    )
    return f"{shown}:{place}: not TOML: {said[:1].lower()}{said[1:]}; {remedy}"


def _too_deep(text: str) -> str:
    """Return the position of the bracket that opens too many levels."""
    depth, line, start = 0, 1, 0
    for at, character in enumerate(text):
        if character == "\n":
            line, start = line + 1, at + 1
        depth += (character in "[{") - (character in "]}")
        if depth > _DEEP:
            return f"{line}:{at - start + 1}"
    return "1:1"


# Line and column of each key and item in a TOML document, for messages.
#
# The parser of the standard library keeps no positions. This one finds only the keys and the items of
# lists, in a document that the parser has already accepted.

Path: TypeAlias = tuple[str | int, ...]

_STRING: Final = (
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
)
_KEY: Final = late_pattern(rf"\s*({_STRING}|[A-Za-z0-9_-]+)\s*(\.?)", re.DOTALL)
_BLANK: Final = late_pattern(r"(?:\s|#[^\n]*)*")
_SEPARATOR: Final = late_pattern(r"(?:[\s,]|#[^\n]*)*")
_SCALAR: Final = late_pattern(rf"{_STRING}|[^,\]}}\n#]+", re.DOTALL)


class Position(NamedTuple):
    """A place in a text, both numbers from 1; columns count characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class TomlPositions:
    """The position of every key, and of every item of a list, by its path; found with the first question."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []
        self._offsets: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}

    def of(self, path: Path) -> Position:
        """Return where `path` is, else the first key in it, else the nearest key that holds it."""
        # A policy asks for all of its limits, and most files have none of them: nothing is read for those.
        if path and str(path[0]) not in self._text and "\\" not in self._text:  # a key may have escapes
            return Position(1, 1)
        if not self._starts:
            self._read()
        while path:
            if path in self._offsets:
                return self._at(self._offsets[path])
            if within := [at for known, at in self._offsets.items() if known[: len(path)] == path]:
                return self._at(min(within))
            path = path[:-1]
        return Position(1, 1)

    def _at(self, offset: int) -> Position:
        """Return the position of the character at `offset`."""
        from bisect import bisect_right  # late: only where a message or a decision names a place

        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def _read(self) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", self._text))]
        # Where a program asks from deep within, the keys outside of the deepest values are enough.
        with contextlib.suppress(RecursionError):
            self._read_tables()

    def _read_tables(self) -> None:
        table: Path = ()
        at = _end(_BLANK, self._text, 0)
        while at < len(self._text):
            if self._text[at] == "[":
                is_array = self._text.startswith("[[", at)
                keys, after = _keys(self._text, at + 1 + is_array)
                table = self._entered(keys, is_array=is_array)
                self._offsets.setdefault(table, at)
                at = self._text.index("]", after) + 1 + is_array
            else:
                at = self._pair(at, table)
            at = _end(_BLANK, self._text, at)

    def _entered(self, keys: tuple[str, ...], *, is_array: bool) -> Path:
        """Return the path of a table that a header names, with the index of the array's latest member."""
        path: Path = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            if is_array and number == len(keys):
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _pair(self, at: int, table: Path) -> int:
        """Note the key at `at` and what is in its value; return where the value ends."""
        keys, after = _keys(self._text, at)
        path = (*table, *keys)
        self._offsets.setdefault(path, at)
        return self._value(_end(_BLANK, self._text, self._text.index("=", after) + 1), path)

    def _value(self, at: int, path: Path) -> int:
        match self._text[at]:
            case "[":
                return self._items(at + 1, path)
            case "{":
                return self._members(at + 1, path)
            case _:
                return _end(_SCALAR, self._text, at)

    def _items(self, at: int, path: Path) -> int:
        for number in count():
            at = _end(_SEPARATOR, self._text, at)
            if self._text[at] == "]":
                break
            self._offsets[(*path, number)] = at
            at = self._value(at, (*path, number))
        return at + 1

    def _members(self, at: int, path: Path) -> int:
        while self._text[at := _end(_SEPARATOR, self._text, at)] != "}":
            at = self._pair(at, path)
        return at + 1


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    keys: list[str] = []
    while found := _KEY.match(text, at):
        keys.append(_plain(found[1]))
        at = found.end()
        if not found[2]:
            break
    return tuple(keys), at


def _plain(key: str) -> str:
    if key[0] not in "\"'":
        return key
    import tomllib  # late: only where a key is quoted

    value: str = tomllib.loads(f"k = {key}")["k"]
    return value


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
