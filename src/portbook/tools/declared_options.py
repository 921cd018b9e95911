"""What an author declares a tool with, each of its type: options of decorators, defaults of parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from portbook.text.named_tuple import NamedTuple
from portbook.tools.mistake_place import declared_at
from portbook.tools.spec import BadTool

__all__ = ["bad_default", "require_options"]


class _OptionType(NamedTuple):
    types: tuple[type, ...]
    words: str


_TEXT: Final = _OptionType((str,), "a text")
_FLAG: Final = _OptionType((bool,), "True or False")
_NUMBER: Final = _OptionType((int,), "a whole number of milliseconds")
_OBJECT: Final = _OptionType((dict,), "a dict")
_LIST: Final = _OptionType((list, tuple), "a list")

# Those that are not here are checked with what they may hold: effect, task, tags, meta.
_KINDS: Final[Mapping[str, _OptionType]] = {
    "label": _TEXT,
    "name": _TEXT,
    "description": _TEXT,
    "title": _TEXT,
    "mime_type": _TEXT,
    "inline": _FLAG,
    "detach": _FLAG,
    "timeout_ms": _NUMBER,
    "cache_ms": _NUMBER,
    "icons": _LIST,
    "annotations": _OBJECT,
    "input_schema": _OBJECT,
    "complete": _OBJECT,
    "folder": _OptionType((str, os.PathLike), "a path"),
}


def require_options(what: str, **given: Any) -> None:
    """Raise `BadTool` where an option of `what` is of another type; None is an option that is not given."""
    for option, value in given.items():
        kind = _KINDS[option]
        # A bool is an int to Python, but no number of anything.
        is_of_it = isinstance(value, kind.types) and (kind is _FLAG or not isinstance(value, bool))
        if value is not None and not is_of_it:
            raise BadTool(f"{what}: {option} must be {kind.words}, not {_indefinite(type(value).__name__)}")
    timeout_ms, cache_ms = given.get("timeout_ms"), given.get("cache_ms")
    if timeout_ms is not None and timeout_ms <= 0:
        raise BadTool(f"{what}: timeout_ms must be above 0")
    if cache_ms is not None and cache_ms < 0:
        raise BadTool(f"{what}: cache_ms must be 0 or above")


def bad_default(function: Callable[..., Any], name: str) -> BadTool:
    """Return the exception for a parameter whose default is not of its type."""
    return BadTool(
        f"{declared_at(function)}: the default of parameter {name} is not of its type; correct one of them"
    )


def _indefinite(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"
