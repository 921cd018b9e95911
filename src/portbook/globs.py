"""Glob patterns: `*` matches any characters, `?` one, all others themselves. Pure: no I/O.

Matching is linear in the length of the name, whatever the pattern, because names come from callers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["covers", "is_pattern", "matches", "problem_of"]

# The names of resources are URIs.
_URI_PATTERN: Final = late_pattern(r"(?!mcp\.tool:)[a-z*?][a-z0-9+.*?-]*:[\x21-\x7e]{0,512}", re.ASCII)
_TOOL_PATTERN: Final = late_pattern(r"[a-z0-9_.*?]{1,128}", re.ASCII)
# As authors name their tools, most often those of MCP servers.
_AUTHORS_PATTERN: Final = late_pattern(r"[a-zA-Z0-9_.*?-]{1,128}", re.ASCII)

# Finds a part of a pattern in a name, from an index on; returns where the match ends, or -1.
_Find = Callable[[str, int], int]


def matches(patterns: Collection[str], name: str) -> bool:
    """Return whether one of `patterns` matches the whole of `name`."""
    return "*" in patterns or name in patterns or any(_matches(pattern, name) for pattern in patterns)


def is_pattern(text: str) -> bool:
    """Return whether `text` can match more than one name."""
    return "*" in text or "?" in text


def covers(wide: str, narrow: str) -> bool:
    """Return whether every name that `narrow` matches is also matched by `wide`.

    A yes is always right; where both have several wildcards, a no may be wrong.
    """
    if "?" in wide and "*" in narrow:
        return False  # a star matches more than one character
    return matches((wide,), narrow)


def problem_of(pattern: str) -> str | None:
    """Return how to fix a pattern of tool names, or None where it is valid."""
    if _TOOL_PATTERN.fullmatch(pattern) or _URI_PATTERN.fullmatch(pattern):
        return None
    if "mcp.tool:" in pattern:
        return "leave out the prefix mcp.tool:"
    if pattern != pattern.lower() and _TOOL_PATTERN.fullmatch(pattern.lower()):
        return (
            f"canonical tool names are in lower case; write {pattern.lower()!r}, "
            f"or {pattern.lower() + '_*'!r} for a tool whose author's name has capitals"
        )
    allowed = "use a-z, 0-9, '_' and '.', '*' for any characters and '?' for one"
    if _AUTHORS_PATTERN.fullmatch(pattern):
        canonical = pattern.lower().replace("-", "_")
        return f"{allowed}; `portbook tools` shows the canonical names, which {canonical + '_*'!r} may match"
    return allowed


def _matches(pattern: str, name: str) -> bool:
    """Match the parts between the stars, each as far left as possible.

    That suffices: a match further right would only leave less room for the parts after it.
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
