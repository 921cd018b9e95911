"""Standard input and output for frames alone: descriptors of our own, that never block the loop.

A tool may print, or start a program that does. So the frames get descriptors of their own, and descriptors
0 and 1 are pointed elsewhere before any tool is loaded: 1 at standard error, 0 at nothing.

No descriptor is ever set to non-blocking: that flag is shared with every process that has the other end of
it open, a shell for example. We ask before each read or write whether it would block instead.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from dataclasses import dataclass
from typing import Final

__all__ = ["Reader", "StandardStreams", "Writer", "claim_standard_streams"]

_CHUNK: Final = 1 << 16

# What select calls writable takes this much at once: POSIX's PIPE_BUF, a page, on Linux and macOS at least.
_PIECE: Final = 512 if sys.platform == "darwin" else 4096


@dataclass(frozen=True, slots=True)
class StandardStreams:
    """The descriptors that frames come from and go to."""

    incoming: int
    outgoing: int


def claim_standard_streams() -> StandardStreams:
    """Take standard input and output for frames alone, and leave harmless ones in their place."""
    sys.stdout.flush()
    streams = StandardStreams(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return streams


class Reader:
    """Reads chunks from a descriptor until it ends or is stopped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # A file is always ready, and the loop refuses to watch one.
        self._is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._is_stopped = False
        self._wake: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """Return the next bytes; none at the end of the stream, or once stopped."""
        if not self._is_stopped:
            if self._is_file:
                await asyncio.sleep(0)  # the other doors' turn
            else:
                await self._ready()
        return b"" if self._is_stopped else os.read(self._descriptor, _CHUNK)

    def stop(self) -> None:
        """Let `read` return as if the stream had ended. What was not read stays unread."""
        self._is_stopped = True
        if self._wake is not None:
            _resolve(self._wake)

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        try:
            loop.add_reader(self._descriptor, _resolve, self._wake)
        except PermissionError:  # what epoll calls a device that is always ready, /dev/null for example
            self._is_file = True
            return
        try:
            await self._wake
        finally:
            loop.remove_reader(self._descriptor)


class Writer:
    """Writes everything it is given, waiting where the other side is slow to read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    async def write(self, data: bytes) -> None:
        """Write all of `data`.

        Raises `BrokenPipeError` where nobody reads any more.
        """
        view = memoryview(data)
        while view:
            if not self._poll.poll(0):
                await self._ready()
            view = view[os.write(self._descriptor, view[:_PIECE]) :]

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_writer(self._descriptor, _resolve, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
