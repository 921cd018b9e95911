"""Where an author's mistake is: file, line and column of a function, or of the line that raised.

Reads the author's file only where there is a mistake to tell.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any, Final

from portbook.text.named_tuple import NamedTuple

__all__ = ["CallPlace", "declared_at", "place_of_error", "shown_file"]

_STANDARD_LIBRARY: Final = f"{Path(os.__file__).parent}{os.sep}"
# Names of the folders of installed packages.
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


class CallPlace(NamedTuple):
    """Where a function was called; its text is made only where there is a mistake to tell."""

    code: CodeType
    instruction: int

    @classmethod
    def of(cls, frame: FrameType | None) -> CallPlace | None:
        """Return the place of a caller's frame."""
        return None if frame is None else cls(frame.f_code, frame.f_lasti)

    def __str__(self) -> str:
        line, _, column, _ = list(self.code.co_positions())[self.instruction // 2]
        return f"{shown_file(self.code.co_filename)}:{line or 1}:{(column or 0) + 1}"


def declared_at(function: Callable[..., Any]) -> str:
    """Return where a function is declared, and its name; the name alone where it has no source."""
    code = getattr(function, "__code__", None)
    name = f"function {getattr(function, '__name__', function)!s}"
    if code is None:
        return name
    line = linecache.getline(code.co_filename, code.co_firstlineno)
    column = len(line) - len(line.lstrip()) + 1 if line.strip() else 1
    return f"{shown_file(code.co_filename)}:{code.co_firstlineno}:{column}: {name}"


def place_of_error(error: BaseException, not_theirs: Iterable[str]) -> str | None:
    """Return where an exception was raised in the author's code, as far in as that goes.

    Files that begin with one of `not_theirs` are not the author's. None where no line of the way is. A line
    of a library counts only where the way has no other: the mistake is where the library was called.
    """
    skipped = tuple(not_theirs)
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename:
        return f"{shown_file(error.filename)}:{error.lineno}:{error.offset or 1}"
    found: str | None = None
    is_found_in_library = True
    at = error.__traceback__
    for frame, line in walk_tb(at):
        assert at is not None
        code = frame.f_code
        is_library = _is_of_library(code.co_filename)
        if not code.co_filename.startswith(skipped) and (is_found_in_library or not is_library):
            is_found_in_library = is_library
            positions = list(code.co_positions())
            column = positions[at.tb_lasti // 2][2] if at.tb_lasti >= 0 else None
            found = f"{shown_file(code.co_filename)}:{line}:{(column or 0) + 1}"
        at = at.tb_next
    return found


def _is_of_library(file: str) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    return file.startswith((_STANDARD_LIBRARY, "<frozen ")) or not _INSTALLED.isdisjoint(Path(file).parts)


def shown_file(name: str) -> str:
    """Return a file's name as messages show it: relative to the current folder where it is below that."""
    try:
        folder = f"{Path.cwd()}{os.sep}"
    except OSError:  # the folder is gone
        return name
    return name.removeprefix(folder)
