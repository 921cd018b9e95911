"""The head of a Markdown file: YAML as far as Agent Skills use it, read strictly. Pure: no I/O.

Plain and quoted scalars, lists in brackets or with dashes, and one level of nested members. What is beyond
that is refused, and never guessed at: what clients are told must be what the file says.
"""

from __future__ import annotations

import json
import re
from typing import Final

from portbook.model import JSON, JSONObject

__all__ = ["BadFrontmatter", "frontmatter_of"]

_BLOCK: Final = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_MEMBER: Final = re.compile(r"([A-Za-z_][\w.-]*):(?:[ \t]+(.*?))?[ \t]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_WORDS: Final[dict[str, JSON]] = {"true": True, "false": False, "null": None, "~": None}

# How a plain scalar of YAML may not begin, or what may not stand in it.
_SPECIAL: Final = re.compile(r"[&*!|>%@`{}\[\],#?:-]|.*(: |[ \t]#)")


class BadFrontmatter(ValueError):
    """A head that cannot be read; the message says which line, and what to do."""


def frontmatter_of(text: str) -> JSONObject:
    """Return the members of the head of a file.

    Raises `BadFrontmatter` where there is none, or it goes beyond what is read here.
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
            raise BadFrontmatter(f"line {number}: the same member twice; keep one")
        members[name] = None if value is None else _value(value, number)
        current = name if value is None else None
    return members


def _below(members: JSONObject, current: str | None, line: str, number: int) -> None:
    """Take an indented line as part of the member above it: an item of a list, or a member of an object."""
    if current is None:
        raise BadFrontmatter(f"line {number}: indented under a member that has a value")
    text = line.strip()
    above = members[current]
    if text.startswith("- "):
        items = above if isinstance(above, list) else []
        if above is not None and not isinstance(above, list):
            raise BadFrontmatter(f"line {number}: an item among members")
        members[current] = [*items, _value(text[2:].strip(), number)]
        return
    name, value = _member(text, number)
    inner = above if isinstance(above, dict) else {}
    if (above is not None and not isinstance(above, dict)) or name in inner or value is None:
        raise BadFrontmatter(f"line {number}: one level of members with values, each once, is read here")
    members[current] = {**inner, name: _value(value, number)}


def _member(line: str, number: int) -> tuple[str, str | None]:
    found = _MEMBER.fullmatch(line)
    if found is None:
        raise BadFrontmatter(f"line {number}: must be a name, a colon, a space and a value")
    return found[1], found[2] or None


def _value(text: str, number: int) -> JSON:
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, str):
            return value
        raise BadFrontmatter(f"line {number}: a double quote that does not end as it should")
    if text.startswith("'"):
        if len(text) > 1 and text.endswith("'") and "'" not in text[1:-1].replace("''", ""):
            return text[1:-1].replace("''", "'")
        raise BadFrontmatter(f"line {number}: a single quote that does not end as it should")
    if text.startswith("[") and text.endswith("]"):
        inside = text[1:-1].strip()
        return [_value(item.strip(), number) for item in inside.split(",")] if inside else []
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    if _SPECIAL.match(text):
        raise BadFrontmatter(f"line {number}: put quotes around this value")
    return text
