"""Where a client resumes: what its `Last-Event-ID` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from portbook.doors.http.mcp.resumable_stream import EventStream, StreamPosition

__all__ = ["STANDALONE", "resume_position"]

# The end of the name of a session's own stream, which GET opens.
STANDALONE: Final = ".0"


def resume_position(
    last_event: str | None,
    standalone: EventStream,
    find: Callable[[str], EventStream | None],
    *,
    is_primed: bool,
) -> StreamPosition:
    """Return where a client resumes that has read up to `last_event` (Last-Event-ID).

    `standalone` is the session's own stream, `find` finds a retained stream by its name.

    1. No event: the session's own stream, after what was delivered of it.
    2. An event of a retained stream: that stream, after the event.
    3. An event of the session's own stream in an earlier process: as without an event.
    4. An event of an expired stream: the session's own stream, as a guest, which does not replace a
       current reader.
    """
    fresh = StreamPosition(standalone, None, is_primed=is_primed)
    if last_event is None:
        return fresh
    name, _, number = last_event.rpartition("-")
    stream = find(name)
    if stream is not None and number.isascii() and number.isdigit() and len(number) <= 12:
        return StreamPosition(stream, min(int(number), stream.end_position))
    if name.endswith(STANDALONE):
        return fresh
    return StreamPosition(standalone, None, is_guest=True)
