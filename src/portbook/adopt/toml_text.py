"""TOML tables by their headers, and a text with some of them replaced by one. Pure: no I/O.

Only tables that are written with headers of their own are found (`[mcp_servers.files]`), as their client
writes them. The caller reads the result back, so a text in a different style is refused, not damaged.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection
from typing import Final

from portbook.adopt.text_cut import Cut, apply_cuts, newline_of
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern

__all__ = ["edit_toml", "toml_value"]

# The start of a line that is a header of a table or of an array of tables.
_HEADER: Final = late_pattern(r"^[ \t]*\[(\[?)([^\n]*?)\]\]?[ \t]*(?:#[^\n]*)?\r?$")
_BARE: Final = late_pattern(r"[A-Za-z0-9_-]+")


def edit_toml(text: str, path: tuple[str, ...], remove: Collection[str], *put: tuple[str, JSONObject]) -> str:
    """Return the document without some tables below `path`, and with `put` in place of the first."""
    cuts: list[Cut] = []
    written = "\n".join(_written(path, *each) for each in put).replace("\n", newline_of(text))
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


def _written(path: tuple[str, ...], name: str, value: JSONObject) -> str:
    head = ".".join(map(_key, (*path, name)))
    plain = {key: each for key, each in value.items() if not isinstance(each, dict)}
    lines = [f"[{head}]", *(f"{_key(key)} = {toml_value(each)}" for key, each in plain.items())]
    for key, each in value.items():
        if isinstance(each, dict):
            lines += ["", f"[{head}.{_key(key)}]"]
            lines += [f"{_key(inner)} = {toml_value(item)}" for inner, item in each.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_value(value: JSON) -> str:
    """Return a text, a number, a list or a table as TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    # JSON escapes are TOML's, but for the delete character, which TOML does not allow as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
