"""Frontmatter of a Markdown file: the subset of YAML that Agent Skills use, parsed strictly. Pure: no I/O.

The subset is plain and quoted scalars, lists in brackets or with dashes, and one level of nested members.
Anything else is refused, never guessed: clients must see exactly what the file says.
"""

from __future__ import annotations

import json
import re
from typing import Final

from portbook.model import JSON, JSONObject

__all__ = ["BadFrontmatter", "frontmatter_of", "line_of_member"]

_BLOCK: Final = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_MEMBER: Final = re.compile(r"([A-Za-z_][\w.-]*):(?:[ \t]+(.*?))?[ \t]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_WORDS: Final[dict[str, JSON]] = {"true": True, "false": False, "null": None, "~": None}

# Characters that a plain scalar of YAML may not begin with or contain.
_SPECIAL: Final = re.compile(r"[&*!|>%@`{}\[\],#?:-]|.*(: |[ \t]#)")


class BadFrontmatter(ValueError):
    """Frontmatter that cannot be parsed; the message names the fix."""

    def __init__(self, said: str, line: int = 1) -> None:
        super().__init__(said)
        self.line = line


def frontmatter_of(text: str) -> JSONObject:
    """Return the members of a file's frontmatter.

    Raises `BadFrontmatter` where there is none, or it uses YAML beyond the supported subset.
    """
    block = _BLOCK.match(text)
    if block is None:
        raise BadFrontmatter("must begin with a line ---, members, and a line ---")
    members: JSONObject = {}
    current: str | None = None
    for number, line in enumerate(block[1].splitlines(), 2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] in " \t":
            _below(members, current, line, number)
            continue
        name, value = _member(line, number)
        if name in members:
            raise BadFrontmatter("the same member twice; keep one", number)
        members[name] = None if value is None else _value(value, number)
        current = name if value is None else None
    return members


def line_of_member(text: str, name: str) -> int:
    """Return the line of a member of the frontmatter; the first line of the file where it has none."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(f"{name}:"):
            return number
        if number > 1 and line.startswith("---"):
            break
    return 1


def _below(members: JSONObject, current: str | None, line: str, number: int) -> None:
    """Add an indented line to the member above it: an item of a list, or a member of an object."""
    if current is None:
        raise BadFrontmatter("indented under a member that has a value", number)
    text = line.strip()
    above = members[current]
    if text.startswith("- "):
        items = above if isinstance(above, list) else []
        if above is not None and not isinstance(above, list):
            raise BadFrontmatter("a list item among members; use one or the other", number)
        members[current] = [*items, _value(text[2:].strip(), number)]
        return
    name, value = _member(text, number)
    inner = above if isinstance(above, dict) else {}
    if (above is not None and not isinstance(above, dict)) or name in inner or value is None:
        raise BadFrontmatter("nest one level only, with unique names and values", number)
    members[current] = {**inner, name: _value(value, number)}


def _member(line: str, number: int) -> tuple[str, str | None]:
    found = _MEMBER.fullmatch(line)
    if found is None:
        raise BadFrontmatter("must be a name, a colon, a space and a value", number)
    return found[1], found[2] or None


def _value(text: str, number: int) -> JSON:
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, str):
            return value
        raise BadFrontmatter("close this double-quoted value", number)
    if text.startswith("'"):
        if len(text) > 1 and text.endswith("'") and "'" not in text[1:-1].replace("''", ""):
            return text[1:-1].replace("''", "'")
        raise BadFrontmatter("close this single-quoted value", number)
    if text.startswith("[") and text.endswith("]"):
        inside = text[1:-1].strip()
        return [_value(item.strip(), number) for item in inside.split(",")] if inside else []
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    if _SPECIAL.match(text):
        raise BadFrontmatter("put quotes around this value", number)
    return text
