"""The line of each key in a TOML document, for messages. Pure: no I/O.

The parser of the standard library does not keep lines. This one finds only the keys, in a document that the
parser has already accepted.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from portbook.text.late_pattern import late_pattern

__all__ = ["Path", "Places"]

Path: TypeAlias = tuple[str | int, ...]

_STRING: Final = (
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
)
_KEY: Final = late_pattern(rf"\s*({_STRING}|[A-Za-z0-9_-]+)\s*(\.?)", re.DOTALL)
_BLANK: Final = late_pattern(r"(?:\s|#[^\n]*)*")
_VALUE_PART: Final = late_pattern(rf"{_STRING}|#[^\n]*|[\[\]{{}}]|\n|[^\[\]{{}}#\n\"']+", re.DOTALL)


class Places:
    """The line of every key; a member of an inline table has the line of its table."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self._scan(text)

    def line_of(self, path: Path) -> int:
        """Return the line of `path`, else of the first key in it, else of the nearest key that holds it."""
        while path:
            if path in self._lines:
                return self._lines[path]
            if within := [line for known, line in self._lines.items() if known[: len(path)] == path]:
                return min(within)
            path = path[:-1]
        return 1

    def _scan(self, text: str) -> None:
        table: Path = ()
        at = _end(_BLANK, text, 0)
        while at < len(text):
            line = text.count("\n", 0, at) + 1
            if text.startswith("[", at):
                is_array = text.startswith("[[", at)
                keys, at = _keys(text, at + 1 + is_array)
                table = self._entered(keys, is_array=is_array)
                self._lines.setdefault(table, line)
                at = text.index("]", at) + 1 + is_array
            else:
                keys, at = _keys(text, at)
                self._lines.setdefault((*table, *keys), line)
                at = _after_value(text, text.index("=", at) + 1)
            at = _end(_BLANK, text, at)

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
    import tomllib  # 20 ms, only where a key is quoted

    value: str = tomllib.loads(f"k = {key}")["k"]
    return value


def _after_value(text: str, at: int) -> int:
    depth = 0
    for part in _VALUE_PART.finditer(text, at):
        if part[0] in ("[", "{"):
            depth += 1
        elif part[0] in ("]", "}"):
            depth -= 1
        elif part[0] == "\n" and depth == 0:
            return part.end()
    return len(text)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
