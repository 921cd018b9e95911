"""The calls that one turn of the event loop brought, on all connections: recorded together, then answered.

Writing a record costs the system as much as a part of the call. So the calls that end in one turn of the loop
share the writing: their records go out in one write for each stream, and only then their answers. A turn is
cut short after 64 calls or 2 ms, so that slow calls do not hold back the answers to quick ones.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final, Protocol

from portbook.doors.http.response import HeldReply

__all__ = ["AnsweredConnection", "HeldReplies"]

# As at the door of lines: a write costs as much as a tenth of a call.
_MOST: Final = 64
_MOST_S: Final = 0.002


class AnsweredConnection(Protocol):
    """A connection whose call has ended."""

    def release(self, held: HeldReply) -> None:
        """Send the reply, whose record is written."""
        ...


class HeldReplies:
    """The calls that have ended since the last answers were sent."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._held: list[tuple[AnsweredConnection, HeldReply]] = []
        self._is_ending = False
        self._until = 0.0
        self.is_full = False
        """Whether whoever adds replies should release them when it is done with one."""

    def add(self, connection: AnsweredConnection, held: HeldReply) -> None:
        """Answer a call at the end of the turn."""
        if not self._held:
            self._until = monotonic() + _MOST_S
            if not self._is_ending:
                self._is_ending = True
                self._loop.call_soon(self._end_turn)
        elif len(self._held) >= _MOST - 1 or monotonic() > self._until:
            self.is_full = True
        self._held.append((connection, held))

    def release(self) -> None:
        """Write the records that are held, then the answers."""
        held, self._held = self._held, []
        self.is_full = False
        for records in {reply.records for _, reply in held}:
            records.flush()
        for connection, reply in held:
            connection.release(reply)

    def _end_turn(self) -> None:
        self._is_ending = False
        self.release()
