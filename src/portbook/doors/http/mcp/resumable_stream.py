"""Resumable streams of events.

A stream holds what one request sends: notifications and requests of the server, then the answer. It is filled
with or without a reader, and has one reader at a time: the latest. In a session its events have ids, so that
a client resumes after the last one it has (Last-Event-ID).

Its size is bounded. The oldest message that may be dropped goes first, so that a reader that keeps up misses
nothing; without such a message, the oldest goes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from portbook.doors.http.mcp.keep_alive import KEEP_ALIVE, RETRY_MS, SILENCE_S
from portbook.doors.http.mcp.stream_retention import FEW_UNREAD, MAX_BYTES, MAX_EVENTS, MAX_REPORT_BYTES
from portbook.mcp.from_any_thread import run_on
from portbook.wire.sse import event, priming

__all__ = ["EventStream", "Keeper", "StreamPosition"]

Write = Callable[[bytes], Awaitable[None]]


class Keeper(Protocol):
    """Retains streams for clients that resume, and counts the bytes that they hold."""

    @property
    def is_full(self) -> bool:
        """Return whether all streams together are over their limit."""
        ...

    def weigh(self, more: int) -> None:
        """Add to the count of bytes; a negative number where a stream has dropped some."""
        ...

    def finish(self, stream: EventStream) -> None:
        """Start to expire a stream that has ended, or whose end has been read."""
        ...


class StreamPosition(NamedTuple):
    """Where in a stream a client starts to read."""

    stream: EventStream
    after: int | None = 0
    """The position of the last message that the client has; None for the last one delivered."""
    is_guest: bool = False
    """Whether the stream it asked for has expired: then its events get no ids to resume from."""
    is_primed: bool = False
    """Whether it first gets an event id to resume from."""
    may_be_sent_away: bool = False
    """Whether `let_go` ends it: the first reader only, not one that has resumed."""


class EventStream:
    """The messages of one request, or those of a session that belong to no request."""

    def __init__(
        self, name: str | None = None, *, is_primed: bool = False, is_deduplicated: bool = False
    ) -> None:
        """Make a stream; with a `name`, events have ids; where `is_primed`, the first event is only an id.

        Where it `is_deduplicated`, a message equal to an unread one is dropped.
        """
        self.name = name or ""
        """The prefix of its events' ids."""
        self.is_primed = is_primed and name is not None
        self.is_ended = False
        self.is_let_go = False
        """Whether the reader should disconnect now, and resume later."""
        self.end_position = 0
        """The position of the last message."""
        self.delivered = 0
        """The position of the last message that was written to a reader."""
        self.bytes = 0
        self._messages: dict[int, bytes] = {}
        self._spare: deque[int] = deque()
        self._spare_bytes = 0
        self._unread: dict[bytes, int] | None = {} if is_deduplicated else None
        self._keeper: Keeper | None = None
        self._reader = 0
        self._readers = 0
        self._news = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    @property
    def is_read(self) -> bool:
        """Return whether it has a reader now."""
        return self._reader > 0

    @property
    def is_delivered(self) -> bool:
        """Return whether it has ended and all of it was read."""
        return self.is_ended and self.delivered >= self.end_position

    def emit(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Add a message, from any thread, if it is still wanted then; it waits here for its reader."""
        run_on(self.loop, self._emit_now, message, is_wanted, is_vital)
        return True

    def _emit_now(self, message: bytes, is_wanted: Callable[[], bool], is_vital: bool) -> None:
        if is_wanted() and not self.is_ended:
            self._add(message, is_vital=is_vital)

    def let_go(self) -> None:
        """Disconnect the reader, if it has an event id to resume from. From any thread."""
        run_on(self.loop, self._let_go_now)

    def _let_go_now(self) -> None:
        if self.is_primed or (self.name and self.end_position):
            self.is_let_go = True
            self._news.set()

    def end(self, message: bytes | None) -> None:
        """Add the last message, and end the stream."""
        if self.is_ended:
            return
        if message is not None:
            self._add(message, is_vital=True)
        self.is_ended = True
        self._news.set()
        if self._keeper is not None:
            self._keeper.finish(self)

    def entrust(self, keeper: Keeper) -> None:
        """Let `keeper` count the bytes of this stream."""
        self._keeper = keeper
        keeper.weigh(self.bytes)

    def release(self) -> None:
        """Leave the keeper."""
        if self._keeper is not None:
            self._keeper.weigh(-self.bytes)
            self._keeper = None

    def discard(self) -> None:
        """End it and drop its messages: no client can resume it."""
        self.release()
        self.is_ended = True
        self._messages.clear()
        self._spare.clear()
        self._spare_bytes = 0
        self._news.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return whether something new has arrived within the time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def copy_to(
        self, write: Write, position: StreamPosition, may_read: Callable[[], bool] = lambda: True
    ) -> None:
        """Write events from `position` on, until the stream ends, disconnects its reader, or gets a new one.

        `may_read` is checked whenever something new has arrived, and regularly in between.
        """
        self._readers += 1
        self._reader = mine = self._readers
        self._news.set()  # wakes the previous reader, which then leaves
        try:
            await self._copy(write, position, lambda: self._reader == mine, may_read)
        finally:
            if self._reader == mine:
                self._reader = 0
            if self.is_delivered and self._keeper is not None:
                self._keeper.finish(self)

    async def _copy(
        self,
        write: Write,
        position: StreamPosition,
        is_reader: Callable[[], bool],
        may_read: Callable[[], bool],
    ) -> None:
        at = self.delivered if position.after is None else position.after
        has_ids = bool(self.name) and not position.is_guest
        if position.is_primed and may_read():
            await write(priming(f"{self.name}-{at}", RETRY_MS))
        while is_reader() and may_read():
            self._news.clear()
            while is_reader() and (following := self._after(at)) is not None:
                at = following
                message = self._messages[at]
                self._forget_unread(message, at)  # from here on, an equal message is new
                await write(event(message, f"{self.name}-{at}" if has_ids else None))
                self.delivered = max(self.delivered, at)
            if self.is_ended or (self.is_let_go and position.may_be_sent_away):
                return
            if not await self.wait(SILENCE_S) and is_reader() and may_read():
                await write(KEEP_ALIVE)

    def _after(self, position: int) -> int | None:
        """Return the position of the next message."""
        if position + 1 in self._messages:
            return position + 1
        if position >= self.end_position:
            return None
        return next((each for each in self._messages if each > position), None)

    def _add(self, message: bytes, *, is_vital: bool) -> None:
        if self._unread is not None:
            if message in self._unread:
                return
            self._unread[message] = self.end_position + 1
        self.end_position += 1
        self._messages[self.end_position] = message
        if not is_vital:
            self._spare.append(self.end_position)
            self._spare_bytes += len(message)
        self._count(len(message))
        while (position := self._superfluous()) is not None:
            dropped = self._messages.pop(position)
            if self._spare and self._spare[0] == position:
                self._spare.popleft()
                self._spare_bytes -= len(dropped)
            self._forget_unread(dropped, position)
            self._count(-len(dropped))
        self._news.set()

    def _superfluous(self) -> int | None:
        """Return the position of a message to drop: the oldest that is not vital, or else the oldest.

        None while the stream is within its limits.
        """
        if self._spare_bytes > MAX_REPORT_BYTES:
            return self._spare[0]
        if len(self._messages) > MAX_EVENTS or self.bytes > MAX_BYTES:
            if self._spare:
                return self._spare[0]
            return next(iter(self._messages)) if len(self._messages) > 1 else None
        if self._keeper is not None and self._keeper.is_full and self._spare:
            is_history = self._spare[0] <= self.delivered
            return self._spare[0] if is_history or len(self._spare) > FEW_UNREAD else None
        return None

    def _forget_unread(self, message: bytes, position: int) -> None:
        if self._unread is not None and self._unread.get(message) == position:
            del self._unread[message]

    def _count(self, more: int) -> None:
        self.bytes += more
        if self._keeper is not None:
            self._keeper.weigh(more)
