"""Streams of messages that clients read, leave, and come back to.

A stream is what one request sends: messages of ours, then its answer. It is filled whether somebody reads it
or not, and has one reader at a time: whoever comes last. In a session its events have ids, so that whoever
comes back with the last one gets the rest.

What is kept is bounded. The oldest that its reader can do without goes first, so that a reader who keeps up
misses nothing; where there is no such, the oldest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from portbook.mcp.from_any_thread import run_on
from portbook.wire.sse import COMMENT, event, priming

__all__ = ["EventStream", "Keeper", "StreamPosition"]

# What is kept of one stream, for those who come back and for those who are slow.
_MAX_EVENTS: Final = 1000
_MAX_BYTES: Final = 4 * 1024 * 1024

# What may wait for a reader where streams hold too much together: enough for one who keeps up.
_FEW: Final = 16

# When to come back, and how long a stream may be silent before something is sent to keep it open.
_RETRY_MS: Final = 500
_SILENCE_S: Final = 15.0

Write = Callable[[bytes], Awaitable[None]]


class Keeper(Protocol):
    """Who keeps a stream for those who come back, and counts what it holds."""

    @property
    def is_full(self) -> bool:
        """Return whether streams hold more than they may together."""
        ...

    def weigh(self, more: int) -> None:
        """Count bytes that a stream holds now, or holds no longer."""
        ...

    def finish(self, stream: EventStream) -> None:
        """Note that a stream has ended, or that its end has been read."""
        ...


class StreamPosition(NamedTuple):
    """Where in a stream somebody begins to read."""

    stream: EventStream
    after: int | None = 0
    """The position after the last message that it has; None for the last that anybody was given."""
    is_guest: bool = False
    """Whether it was sent here for want of the stream it asks for: then it gets no ids to come back with."""
    is_primed: bool = False
    """Whether it is first given an id to come back with."""
    may_be_sent_away: bool = False
    """Whether it leaves where the stream lets its reader go: whoever has come back does not."""


class EventStream:
    """The messages of one request, or those of a session that belong to none."""

    def __init__(
        self, name: str | None = None, *, is_primed: bool = False, is_deduplicated: bool = False
    ) -> None:
        """Begin; with a `name`, events have ids; where `is_primed`, the first is an id and nothing else.

        Where it `is_deduplicated`, one that still waits to be read says all that an equal one would.
        """
        self.name = name or ""
        """What its events' ids begin with."""
        self.is_primed = is_primed and name is not None
        self.is_ended = False
        self.is_let_go = False
        """Whether the reader is to leave now, and come back."""
        self.end_position = 0
        """The position after the last message."""
        self.delivered = 0
        """The position after the last message that was written to a reader."""
        self.bytes = 0
        self._messages: dict[int, bytes] = {}
        self._spare: deque[int] = deque()
        self._unread: dict[bytes, int] | None = {} if is_deduplicated else None
        self._keeper: Keeper | None = None
        self._reader = 0
        self._readers = 0
        self._news = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    @property
    def is_read(self) -> bool:
        """Return whether somebody reads it now."""
        return self._reader > 0

    @property
    def is_delivered(self) -> bool:
        """Return whether all of it has been read."""
        return self.is_ended and self.delivered >= self.end_position

    def emit(self, message: bytes, is_wanted: Callable[[], bool], *, is_vital: bool = False) -> None:
        """Add a message, from any thread, if by then it is still wanted."""
        run_on(self.loop, self._emit_now, message, is_wanted, is_vital)

    def _emit_now(self, message: bytes, is_wanted: Callable[[], bool], is_vital: bool) -> None:
        if is_wanted() and not self.is_ended:
            self._add(message, is_vital=is_vital)

    def let_go(self) -> None:
        """Send the reader away for now, if it has something to come back with. From any thread."""
        run_on(self.loop, self._let_go_now)

    def _let_go_now(self) -> None:
        if self.is_primed or (self.name and self.end_position):
            self.is_let_go = True
            self._news.set()

    def end(self, message: bytes | None) -> None:
        """Add the last message."""
        if self.is_ended:
            return
        if message is not None:
            self._add(message, is_vital=True)
        self.is_ended = True
        self._news.set()
        if self._keeper is not None:
            self._keeper.finish(self)

    def entrust(self, keeper: Keeper) -> None:
        """Let `keeper` count what is held."""
        self._keeper = keeper
        keeper.weigh(self.bytes)

    def release(self) -> None:
        """Be kept by nobody any more."""
        if self._keeper is not None:
            self._keeper.weigh(-self.bytes)
            self._keeper = None

    def discard(self) -> None:
        """End it with nothing left to read: nobody can come for it."""
        self.release()
        self.is_ended = True
        self._messages.clear()
        self._spare.clear()
        self._news.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return whether something new has come before the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def copy_to(
        self, write: Write, position: StreamPosition, may_read: Callable[[], bool] = lambda: True
    ) -> None:
        """Write events from `position` on until the stream ends, lets its reader go, or has another reader.

        `may_read` is asked whenever something new has come, and now and then.
        """
        self._readers += 1
        self._reader = mine = self._readers
        self._news.set()  # whoever has read it so far leaves
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
            await write(priming(f"{self.name}-{at}", _RETRY_MS))
        while is_reader() and may_read():
            self._news.clear()
            while is_reader() and (following := self._after(at)) is not None:
                at = following
                message = self._messages[at]
                self._forget_unread(message, at)  # from here on an equal one is news
                await write(event(message, f"{self.name}-{at}" if has_ids else None))
                self.delivered = max(self.delivered, at)
            if self.is_ended or (self.is_let_go and position.may_be_sent_away):
                return
            if not await self.wait(_SILENCE_S) and is_reader() and may_read():
                await write(COMMENT)

    def _after(self, position: int) -> int | None:
        """Return the position of the next message that is kept."""
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
        self._count(len(message))
        while (position := self._superfluous()) is not None:
            dropped = self._messages.pop(position)
            self._forget_unread(dropped, position)
            self._count(-len(dropped))
        self._news.set()

    def _superfluous(self) -> int | None:
        """Return the position of a message to drop: the oldest that can be done without, or else the oldest.

        None where there is room for all of them.
        """
        if len(self._messages) > _MAX_EVENTS or self.bytes > _MAX_BYTES:
            if self._spare:
                return self._spare.popleft()
            return next(iter(self._messages)) if len(self._messages) > 1 else None
        if self._keeper is not None and self._keeper.is_full and self._spare:
            is_history = self._spare[0] <= self.delivered
            return self._spare.popleft() if is_history or len(self._spare) > _FEW else None
        return None

    def _forget_unread(self, message: bytes, position: int) -> None:
        if self._unread is not None and self._unread.get(message) == position:
            del self._unread[message]

    def _count(self, more: int) -> None:
        self.bytes += more
        if self._keeper is not None:
            self._keeper.weigh(more)
