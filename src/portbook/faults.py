"""Exceptions as records may show them: a type and a place, no values. Pure: no I/O."""

from __future__ import annotations

from traceback import walk_tb

__all__ = ["place_of"]

_OWN_FOLDER = __file__.rsplit("/", 1)[0] + "/"


def place_of(error: BaseException) -> str:
    """Return an exception's type and where it was raised, innermost first: enough to find it."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    # A tool's exception passes through frames of ours on its way; those say nothing about it.
    theirs = [(code, line) for code, line in frames if not code.co_filename.startswith(_OWN_FOLDER)]
    places = [
        f"{code.co_filename.rsplit('/', 1)[-1]}:{line} in {code.co_name}" for code, line in theirs or frames
    ]
    return " < ".join([f"{type(error).__qualname__} at {place}" for place in places[-1:]] + places[-2:-4:-1])
