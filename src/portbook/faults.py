"""Describes exceptions for records: type and place, no values. Pure: no I/O."""

from __future__ import annotations

from traceback import walk_tb

__all__ = ["place_of"]

_OWN_FOLDER = __file__.rsplit("/", 1)[0] + "/"


def place_of(error: BaseException) -> str:
    """Return an exception's type and the last three places on its way, innermost first."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    # Portbook's own frames do not help to find the error in a tool.
    theirs = [(code, line) for code, line in frames if not code.co_filename.startswith(_OWN_FOLDER)]
    places = [
        f"{code.co_filename.rsplit('/', 1)[-1]}:{line} in {code.co_name}" for code, line in theirs or frames
    ]
    return " < ".join([f"{type(error).__qualname__} at {place}" for place in places[-1:]] + places[-2:-4:-1])
