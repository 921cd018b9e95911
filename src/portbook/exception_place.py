"""Describes exceptions for records: type and place, no values. Pure: no I/O."""

from __future__ import annotations

from traceback import walk_tb
from types import CodeType
from typing import Final

from portbook.text.named_tuple import NamedTuple

__all__ = ["Fault", "ToolExit", "is_own_file", "place_of", "places_in_tool", "raised_by"]

_OWN_FOLDER: Final = __file__.rsplit("/", 1)[0] + "/"

# Code of the standard library, some of it generated (the methods of data classes), and of installed packages.
_STANDARD: Final = (walk_tb.__code__.co_filename.rsplit("/", 1)[0] + "/", "<frozen ", "<string>")
_INSTALLED: Final = ("/site-packages/", "/dist-packages/")


class ToolExit(Exception):
    """Carries what a tool raised that is no error, such as `SystemExit`: it ends the call alone."""

    def __init__(self, raised: BaseException) -> None:
        super().__init__()
        self.raised = raised
        self.__traceback__ = raised.__traceback__


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


def raised_by(error: BaseException) -> BaseException:
    """Return what the tool itself raised."""
    return error.raised if isinstance(error, ToolExit) else error


def places_in_tool(error: BaseException) -> list[tuple[CodeType, int]]:
    """Return where an exception passed through the tool, innermost last.

    1. The tool's own code: neither Portbook's, nor the standard library's, nor an installed package's.
    2. For a tool that is installed itself, what is in the folder of its outermost frame.
    3. Where the tool has no frame, all of them.
    """
    frames = [(frame.f_code, line) for frame, line in walk_tb(raised_by(error).__traceback__)]
    theirs = [place for place in frames if not is_own_file(place[0].co_filename)]
    written = [place for place in theirs if not _is_library(place[0].co_filename)]
    if written or not theirs:
        return written or frames
    folder = theirs[0][0].co_filename.rpartition("/")[0] + "/"
    return [place for place in theirs if place[0].co_filename.startswith(folder)]


def _is_library(filename: str) -> bool:
    return filename.startswith(_STANDARD) or any(each in filename for each in _INSTALLED)


def place_of(error: BaseException) -> str:
    """Return an exception's type and the last three places on its way, innermost first.

    One of them is the innermost of the tool's own, however deep in a library the exception was raised.
    """
    error = raised_by(error)
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    theirs = [(code, line) for code, line in frames if not is_own_file(code.co_filename)] or frames
    told = theirs[:-4:-1]
    told += [place for place in places_in_tool(error)[-1:] if place not in told]
    places = [f"{code.co_filename.rsplit('/', 1)[-1]}:{line} in {code.co_name}" for code, line in told]
    told_at = " < ".join([f"{type(error).__qualname__} at {place}" for place in places[:1]] + places[1:])
    return told_at.encode(errors="backslashreplace").decode()  # a file's name may be no text
