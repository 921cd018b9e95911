"""Patterns of names: `*` for any characters, `?` for one, everything else for itself. Pure: no I/O.

Matching takes time in proportion to the name, whatever the pattern: names come from callers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

__all__ = ["covers", "matches", "problem_of"]

# Resources have addresses for names.
_URI_PATTERN: Final = re.compile(r"(?!mcp\.tool:)[a-z*?][a-z0-9+.*?-]*:[\x21-\x7e]{0,512}", re.ASCII)
_TOOL_PATTERN: Final = re.compile(r"[a-z0-9_.*?]{1,128}", re.ASCII)

# Finds a part of a pattern in a name, from a place on; returns where it ends, or -1.
_Find = Callable[[str, int], int]


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of `patterns` matches the whole of `name`."""
    return any(pattern in ("*", name) or _matches(pattern, name) for pattern in patterns)


def covers(wide: str, narrow: str) -> bool:
    """Return whether every name that `narrow` matches is matched by `wide` too.

    Exact where it says yes; where both have several wildcards it may say no although it is so.
    """
    if "?" in wide and "*" in narrow:
        return False  # a wildcard for one character cannot stand for one that is for many
    return matches((wide,), narrow)


def problem_of(pattern: str) -> str | None:
    """Return what is wrong with a pattern of tool names, and what to do about it."""
    if _TOOL_PATTERN.fullmatch(pattern) or _URI_PATTERN.fullmatch(pattern):
        return None
    if "mcp.tool:" in pattern:
        return "leave out the prefix mcp.tool:"
    if pattern != pattern.lower() and _TOOL_PATTERN.fullmatch(pattern.lower()):
        return f"tool names are in lower case; write {pattern.lower()!r}"
    return "use a-z, 0-9, '_' and '.', '*' for any characters and '?' for one"


def _matches(pattern: str, name: str) -> bool:
    """Match what stands between the stars, each part as far to the left as it goes.

    That is enough: a part further to the right would only leave less room for those after it.
    """
    first, *middle = pattern.split("*")
    if not middle:
        return len(first) == len(name) and _finder(first)(name, 0) == len(name)
    last = middle.pop()
    end = len(name) - len(last)
    at = len(first)
    if end < at or _finder(first)(name[:at], 0) != at or _finder(last)(name[end:], 0) != len(last):
        return False
    body = name[:end]
    for part in middle:
        at = _finder(part)(body, at)
        if at < 0:
            return False
    return True


@lru_cache(maxsize=1024)
def _finder(part: str) -> _Find:
    if "?" not in part:
        length = len(part)

        def find(name: str, start: int) -> int:
            found = name.find(part, start)
            return found if found < 0 else found + length

        return find
    compiled = re.compile("".join("." if each == "?" else re.escape(each) for each in part), re.DOTALL)

    def search(name: str, start: int) -> int:
        found = compiled.search(name, start)
        return -1 if found is None else found.end()

    return search
