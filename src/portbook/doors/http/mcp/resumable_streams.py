"""Resumable streams of events.

A stream holds what one request sends: notifications and requests of the server, then the answer. It is filled
with or without a reader, and has one reader at a time: the latest. In a session its events have ids, so that
a client resumes after the last one it has (Last-Event-ID).

Its size is bounded. While much of it is unread, it has no room for reports, and tools wait for its reader;
without a reader they do not wait, and the oldest reports are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from portbook.doors.http.mcp.kept_events_and_stream_limits import (
    KEEP_ALIVE,
    KEPT_READ_S,
    KEPT_UNREAD_S,
    MAX_BYTES_OF_ALL,
    MAX_BYTES_OF_SESSION,
    MAX_STREAMS,
    RETRY_MS,
    SILENCE_S,
    StreamMessages,
)
from portbook.mcp.report_queue import run_on
from portbook.wire.sse import event, priming

__all__ = [
    "STANDALONE",
    "EventStream",
    "Keeper",
    "ReadableStream",
    "RetainedStreams",
    "StreamBudget",
    "StreamCopy",
    "StreamPosition",
    "resume_position",
]

# Where a client resumes: what its `Last-Event-ID` says.

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


class StreamCopy(Protocol):
    """The copy of a stream that other nodes read."""

    def add(self, position: int, message: bytes, *, is_vital: bool) -> None:
        """Add a message."""
        ...

    def drop(self, position: int) -> None:
        """Drop a message, as the stream has."""
        ...

    def end(self, *, is_answered: bool) -> None:
        """End it, with an answer or without."""
        ...

    def expire(self) -> None:
        """Delete it: no client can resume it."""
        ...


class ReadableStream(Protocol):
    """A stream that a client can read, wherever it is kept."""

    @property
    def is_read(self) -> bool:
        """Return whether it has a reader now."""
        ...

    async def copy_to(
        self, write: Write, position: StreamPosition, may_read: Callable[[], bool] = lambda: True
    ) -> None:
        """Write events from `position` on, until the stream ends, disconnects its reader, or gets a new one.

        `may_read` is checked whenever something new has arrived, and regularly in between.
        """
        ...


class StreamPosition(NamedTuple):
    """Where in a stream a client starts to read."""

    stream: ReadableStream
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
        self._messages = StreamMessages(self._is_pressed, is_deduplicated=is_deduplicated)
        self._on_room: list[Callable[[], None]] = []
        self._keeper: Keeper | None = None
        self._copied: StreamCopy | None = None
        self._is_expired = False
        self._reader = 0
        self._readers = 0
        self._news = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    @property
    def end_position(self) -> int:
        """Return the position of the last message."""
        return self._messages.end_position

    @property
    def bytes(self) -> int:
        """Return how many bytes it holds."""
        return self._messages.bytes

    @property
    def is_read(self) -> bool:
        """Return whether it has a reader now."""
        return self._reader > 0

    @property
    def is_copied(self) -> bool:
        """Return whether other nodes can read it."""
        return self._copied is not None

    @property
    def is_delivered(self) -> bool:
        """Return whether it has ended and all of it was read."""
        return self.is_ended and self._messages.delivered >= self.end_position

    def emit(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Add a message, from any thread, if it is still wanted then; it waits here for its reader.

        With `on_room`, it is left to the sender while the reader has much to read.
        """
        if on_room is not None and not self._has_room:
            self._on_room.append(on_room)
            return False
        run_on(self.loop, self._emit_now, message, is_wanted, is_vital)
        return True

    def _emit_now(self, message: bytes, is_wanted: Callable[[], bool], is_vital: bool) -> None:
        if is_wanted() and not self.is_ended:
            self._add(message, is_vital=is_vital)

    @property
    def _has_room(self) -> bool:
        has_lost_its_reader = self._readers > 0 and not self.is_read  # it may never come back
        return self.is_ended or has_lost_its_reader or self._messages.has_room

    def _made_room(self) -> None:
        if self._on_room and self._has_room:
            waiting, self._on_room = self._on_room, []
            for pass_on in waiting:
                pass_on()

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
        self._made_room()
        if self._copied is not None:
            self._copied.end(is_answered=message is not None)
        if self._keeper is not None:
            self._keeper.finish(self)

    def copy_into(self, copied: StreamCopy) -> None:
        """Let other nodes read it, too: what it holds now, and what is still to come."""
        if self._is_expired:
            copied.expire()
            return
        self._copied = copied
        for position, message in self._messages.kept():
            copied.add(position, message, is_vital=True)
        if self.is_ended:
            copied.end(is_answered=bool(self.end_position))

    def expire(self) -> None:
        """Delete what other nodes can read of it, or would be able to."""
        self._is_expired = True
        if self._copied is not None:
            self._copied.expire()
            self._copied = None

    def send_reader_away(self) -> None:
        """Disconnect the reader: a different node has a newer one."""
        self._reader = 0
        self._news.set()
        self._made_room()

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
        self._news.set()
        self._made_room()

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
                self._made_room()
            if self.is_delivered and self._keeper is not None:
                self._keeper.finish(self)

    async def _copy(
        self,
        write: Write,
        position: StreamPosition,
        is_reader: Callable[[], bool],
        may_read: Callable[[], bool],
    ) -> None:
        at = self._messages.delivered if position.after is None else position.after
        has_ids = bool(self.name) and not position.is_guest
        if position.is_primed and may_read():
            await write(priming(f"{self.name}-{at}", RETRY_MS))
        while is_reader() and may_read():
            self._news.clear()
            while is_reader() and (following := self._messages.after(at)) is not None:
                at = following
                message = self._messages.read(at)
                await write(event(message, f"{self.name}-{at}" if has_ids else None))
                self._messages.deliver(at)
                self._made_room()
            if self.is_ended or (self.is_let_go and position.may_be_sent_away):
                return
            if not await self.wait(SILENCE_S) and is_reader() and may_read():
                await write(KEEP_ALIVE)

    def _add(self, message: bytes, *, is_vital: bool) -> None:
        if not self._messages.add(message, is_vital=is_vital):
            return
        self._weigh(len(message))
        if self._copied is not None:
            self._copied.add(self._messages.end_position, message, is_vital=is_vital)
        while (dropped := self._messages.drop_one()) is not None:
            position, size = dropped
            self._weigh(-size)
            if self._copied is not None:
                self._copied.drop(position)
        self._news.set()

    def _is_pressed(self) -> bool:
        return self._keeper is not None and self._keeper.is_full

    def _weigh(self, more: int) -> None:
        if self._keeper is not None:
            self._keeper.weigh(more)


# How long streams are retained for clients that resume, and how many bytes they may hold.


class StreamBudget:
    """The bytes that streams of all sessions hold. Over the limit, those that ended first are dropped."""

    def __init__(self) -> None:
        self.bytes = 0
        self.ended: dict[EventStream, RetainedStreams] = {}

    @property
    def is_full(self) -> bool:
        """Return whether they are over the limit."""
        return self.bytes > MAX_BYTES_OF_ALL

    def clear(self) -> None:
        """Drop ended streams until the rest is within the limit, or none is left."""
        while self.is_full and self.ended:
            stream, retained = next(iter(self.ended.items()))
            retained.drop(stream)


class RetainedStreams:
    """The retained streams of one session."""

    def __init__(self, budget: StreamBudget) -> None:
        self._budget = budget
        self._streams: dict[str, EventStream] = {}
        self._timers: dict[EventStream, asyncio.TimerHandle] = {}
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Return whether the streams of this session, or of all, are over their limit."""
        return self.bytes > MAX_BYTES_OF_SESSION or self._budget.is_full

    def find(self, name: str) -> EventStream | None:
        """Return the stream of this name, if it is still retained."""
        return self._streams.get(name)

    def put(self, stream: EventStream) -> None:
        """Retain a stream. If there are too many, the oldest ended one is dropped, or else the oldest."""
        if stream.name in self._streams:
            return
        if len(self._streams) >= MAX_STREAMS:
            self.drop(next((each for each in self._streams.values() if each.is_ended), self._oldest()))
        self._streams[stream.name] = stream
        stream.entrust(self)
        if stream.is_ended:
            self.finish(stream)

    def weigh(self, more: int) -> None:
        """Add to the count of bytes, and drop ended streams if it is over the limit."""
        self.bytes += more
        self._budget.bytes += more
        if more > 0 and self.is_full:
            self._budget.clear()
            for stream in [each for each in self._streams.values() if each.is_ended]:
                if self.bytes > MAX_BYTES_OF_SESSION:
                    self.drop(stream)

    def finish(self, stream: EventStream) -> None:
        """Start to expire a stream that has ended: sooner once its end was read."""
        if self._streams.get(stream.name) is not stream:
            return
        self._budget.ended[stream] = self
        if (timer := self._timers.pop(stream, None)) is not None:
            timer.cancel()
        left_s = KEPT_READ_S if stream.is_delivered else KEPT_UNREAD_S
        self._timers[stream] = stream.loop.call_later(left_s, self.drop, stream)

    def drop(self, stream: EventStream) -> None:
        """Drop a stream. Its current reader continues; no client can resume it."""
        if self._streams.get(stream.name) is stream:
            stream.expire()
            self._let_out(stream)

    def _let_out(self, stream: EventStream) -> None:
        del self._streams[stream.name]
        self._budget.ended.pop(stream, None)
        if (timer := self._timers.pop(stream, None)) is not None:
            timer.cancel()
        stream.release()

    def clear(self) -> None:
        """Drop all streams from memory; other nodes can read what they have a copy of."""
        for stream in tuple(self._streams.values()):
            self._let_out(stream)

    def _oldest(self) -> EventStream:
        # The first is the session's own, which belongs to no request and stays.
        return list(self._streams.values())[1]
