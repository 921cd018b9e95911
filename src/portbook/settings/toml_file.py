"""A TOML file as values, with the place of each key in messages."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any, Final

from portbook.settings.all_problems_at_once import BadSettings
from portbook.settings.toml_positions import Path, TomlPositions
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = ["TomlFile", "parse_toml", "read_toml"]

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
    import tomllib  # 20 ms, only where there is a file

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
