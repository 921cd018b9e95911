"""What standard error says of an exception that a tool raised: one line, and the traceback on request.

The line has no values: the tool, the type of the exception, file and line, and the id of the request, which
the record has, too.
"""

from __future__ import annotations

import contextlib
import select
import sys
from traceback import StackSummary, TracebackException
from typing import Final

from portbook.escaping import escaped, escaped_lines
from portbook.exception_place import Fault, is_own_file, places_in_tool, raised_by

__all__ = ["frames_of", "line_of", "report_fault"]

# In characters: a pipe that select() calls writable takes 4096 bytes (PIPE_BUF) without blocking.
_MAX_LINE: Final = 1000


def report_fault(fault: Fault, *, with_traceback: bool, speaker: str = "") -> None:
    """Print a fault to standard error; with its traceback, unless the tool meant it.

    `speaker` is what this process calls itself, where several print to one standard error.

    The line is left out where it would block: callers can cause any number of them, and a client that never
    reads standard error must not stop the server.
    """
    # A closed or broken standard error does not fail the call.
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
        if with_traceback or select.select((), (sys.stderr,), (), 0)[1]:
            frames = escaped_lines(frames_of(fault.error)) if with_traceback and not fault.is_meant else ""
            name = f"{speaker}: " if speaker else ""
            sys.stderr.write(f"portbook: {name}{line_of(fault)}\n{frames}")
            sys.stderr.flush()


def line_of(fault: Fault) -> str:
    """Return one line about a fault."""
    where = "".join(f" at {code.co_filename}:{line}" for code, line in places_in_tool(fault.error)[-1:])
    kind = type(raised_by(fault.error)).__qualname__
    return escaped(f"{fault.tool} raised {kind}{where} (request {fault.request})", _MAX_LINE)


def frames_of(error: BaseException) -> str:
    """Return the traceback of an exception without Portbook's own frames, so that it begins in the tool."""
    told = TracebackException.from_exception(raised_by(error))
    waiting: list[TracebackException | None] = [told]
    while waiting:
        part = waiting.pop()
        if part is not None:
            theirs = [frame for frame in part.stack if not is_own_file(frame.filename)]
            # An error of ours that the tool's error follows from keeps its type and text alone.
            part.stack = StackSummary.from_list(theirs if theirs or part is not told else part.stack)
            waiting += [part.__cause__, part.__context__, *(part.exceptions or ())]
    return "".join(told.format())
