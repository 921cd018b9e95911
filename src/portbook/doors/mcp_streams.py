"""Streams of messages that clients read, leave, and come back to.

A stream is what one request sends: messages of ours, then its answer. It is filled whether somebody reads it
or not. In a session its events have ids, so that whoever comes back with the last one gets the rest.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from portbook.wire.sse import COMMENT, event, priming

__all__ = ["Stream"]

# What is kept for those who come back, and what may wait for those who are slow.
_MAX_EVENTS: Final = 1000
_MAX_BYTES: Final = 4 * 1024 * 1024

# When to come back, and how long a stream may be silent before something is sent to keep it open.
_RETRY_MS: Final = 500
_SILENCE_S: Final = 15.0

Write = Callable[[bytes], Awaitable[None]]


class Stream:
    """The messages of one request, or those of a session that belong to none."""

    def __init__(self, name: str | None = None, *, is_primed: bool = False) -> None:
        """Begin; with a `name`, events have ids; where `is_primed`, the first is an id and nothing else."""
        self._name = name
        self._is_primed = is_primed and name is not None
        self._messages: list[bytes] = []
        self._bytes = 0
        self._dropped = 0
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._home = threading.get_ident()
        self.is_ended = False
        self.is_let_go = False
        """Whether the reader is to leave now, and come back."""

    @property
    def name(self) -> str:
        """Return what its events' ids begin with."""
        return self._name or ""

    @property
    def has_messages(self) -> bool:
        """Return whether there is anything to read."""
        return bool(self._messages) or self._dropped > 0

    @property
    def end_position(self) -> int:
        """Return the position after the last message."""
        return self._dropped + len(self._messages)

    def emit(self, message: bytes, is_wanted: Callable[[], bool], *, is_vital: bool = False) -> None:
        """Add a message, from any thread, if by then it is still wanted."""
        if threading.get_ident() != self._home:
            self._loop.call_soon_threadsafe(lambda: self.emit(message, is_wanted, is_vital=is_vital))
        elif is_wanted() and not self.is_ended:
            self._add(message, is_vital=is_vital)

    def let_go(self) -> None:
        """Send the reader away for now, if it can come back. From any thread."""
        if self._name is not None:
            self.is_let_go = True
            self._loop.call_soon_threadsafe(self._news.set)

    def end(self, message: bytes | None) -> None:
        """Add the last message."""
        if message is not None and not self.is_ended:
            self._add(message, is_vital=True)
        self.is_ended = True
        self._news.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return whether something new has come before the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def copy_to(self, write: Write, position: int | None = None) -> None:
        """Write events until the stream ends or lets its reader go: all, or those from `position` on."""
        if position is None and self._is_primed:
            await write(priming(f"{self._name}-0", _RETRY_MS))
        is_returning = position is not None
        at = max(position or 0, self._dropped)
        while True:
            self._news.clear()
            while at < self.end_position:
                at += 1
                name = None if self._name is None else f"{self._name}-{at}"
                await write(event(self._messages[at - 1 - self._dropped], name))
                at = max(at, self._dropped)
            if self.is_ended or (self.is_let_go and not is_returning):
                return
            if not await self.wait(_SILENCE_S):
                await write(COMMENT)

    def _add(self, message: bytes, *, is_vital: bool) -> None:
        if self._bytes > _MAX_BYTES or len(self._messages) >= _MAX_EVENTS:
            if not is_vital:
                return  # it only tells of progress, and a tool must not fill memory
            self._bytes -= len(self._messages.pop(0))
            self._dropped += 1
        self._messages.append(message)
        self._bytes += len(message)
        self._news.set()
