"""Describes exceptions for records: type and place, no values. Pure: no I/O."""

from __future__ import annotations

from traceback import walk_tb
from typing import NamedTuple

__all__ = ["Fault", "is_own_file", "place_of"]

_OWN_FOLDER = __file__.rsplit("/", 1)[0] + "/"


class Fault(NamedTuple):
    """An exception that a tool raised, and in which call."""

    error: Exception
    tool: str
    """The kind and the name of what was called."""
    request: str
    """The id of the request in the record."""
    is_meant: bool
    """Whether it is a `ToolError`, which the author raised for the caller to read."""


def is_own_file(filename: str) -> bool:
    """Return whether code is Portbook's own: its frames do not help to find the error in a tool."""
    return filename.startswith(_OWN_FOLDER)


def place_of(error: BaseException) -> str:
    """Return an exception's type and the last three places on its way, innermost first."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    theirs = [(code, line) for code, line in frames if not is_own_file(code.co_filename)]
    places = [
        f"{code.co_filename.rsplit('/', 1)[-1]}:{line} in {code.co_name}" for code, line in theirs or frames
    ]
    return " < ".join([f"{type(error).__qualname__} at {place}" for place in places[-1:]] + places[-2:-4:-1])
