"""Patterns of names: `*` for any characters, `?` for one, everything else for itself. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

__all__ = ["covers", "matches", "problem_of"]

_TOOL_PATTERN: Final = re.compile(r"[a-z0-9_.*?]{1,128}", re.ASCII)


def matches(patterns: Iterable[str], name: str) -> bool:
    """Return whether one of `patterns` matches the whole of `name`."""
    return any(pattern == "*" or _compiled(pattern).fullmatch(name) is not None for pattern in patterns)


def covers(wide: str, narrow: str) -> bool:
    """Return whether every name that `narrow` matches is matched by `wide` too.

    Exact where it says yes; where both have several wildcards it may say no although it is so.
    """
    if "?" in wide and "*" in narrow:
        return False  # a wildcard for one character cannot stand for one that is for many
    return matches((wide,), narrow)


def problem_of(pattern: str) -> str | None:
    """Return what is wrong with a pattern of tool names, and what to do about it."""
    if _TOOL_PATTERN.fullmatch(pattern):
        return None
    if "mcp.tool:" in pattern:
        return "leave out the prefix mcp.tool:"
    if pattern != pattern.lower() and _TOOL_PATTERN.fullmatch(pattern.lower()):
        return f"tool names are in lower case; write {pattern.lower()!r}"
    return "use a-z, 0-9, '_' and '.', '*' for any characters and '?' for one"


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = (".*" if part == "*" else "." if part == "?" else re.escape(part) for part in _split(pattern))
    return re.compile("".join(parts), re.DOTALL)


def _split(pattern: str) -> list[str]:
    # A run of stars means what one star means, and would make matching slow.
    return [part for part in re.split(r"(\?)|(\*)\**", pattern) if part]
