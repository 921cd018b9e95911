"""Builds a text that a regular expression probably matches; the caller has to try it. Pure: no I/O."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, Final

__all__ = ["sample"]

# Counted repetitions turn short patterns into long texts.
_MAX_TEXT: Final = 2_000

_CLASSES: Final = {
    "CATEGORY_DIGIT": "0",
    "CATEGORY_WORD": "a",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_NOT_WORD": "-",
    "CATEGORY_NOT_SPACE": "a",
}


def sample(pattern: str, more: int = 0) -> str | None:
    """Return a text that `pattern` probably matches, with each repetition `more` times beyond its minimum.

    A range contributes its first character, or its last where `more` is above 0.

    Return None for a pattern that Python cannot parse, or whose text would be too long.
    """
    parser: Any = importlib.import_module("re._parser")  # Python's own parser, which has no public name
    try:
        with warnings.catch_warnings(action="ignore"):  # about syntax that a later Python may change
            pieces = parser.parse(pattern)
        text = "".join(_piece(str(kind), given, more) for kind, given in pieces)
    except (_SampleTooLong, RecursionError, parser.error, OverflowError):
        return None
    return text if len(text) <= _MAX_TEXT else None


class _SampleTooLong(Exception):
    """The text would be too long."""


def _piece(kind: str, given: Any, more: int) -> str:
    if kind == "LITERAL":
        return chr(given)
    if kind == "NOT_LITERAL":
        return "a" if given != ord("a") else "b"
    if kind == "ANY":
        return "a"
    if kind == "IN":
        return _one_of(given, is_last=more > 0)
    if kind == "BRANCH":
        return _all(given[1][0], more)
    if kind == "SUBPATTERN":
        return _all(given[-1], more)
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = given
        times = min(least + more, int(most))
        text = _all(inner, more)
        if len(text) * times > _MAX_TEXT:
            raise _SampleTooLong
        return text * times
    return ""  # an anchor, or syntax that linear-time patterns do not have


def _all(pieces: Any, more: int) -> str:
    return "".join(_piece(str(kind), given, more) for kind, given in pieces)


def _one_of(choices: Any, *, is_last: bool = False) -> str:
    if str(choices[0][0]) == "NEGATE":
        refused = _one_of(choices[1:])
        return next(character for character in "a0- ~" if character != refused)
    kind, given = choices[0]
    if str(kind) == "RANGE":
        return chr(given[1] if is_last else given[0])
    return _CLASSES.get(str(given), "a") if str(kind) == "CATEGORY" else chr(given)
