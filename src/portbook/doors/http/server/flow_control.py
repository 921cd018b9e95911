"""What goes out on one connection, no faster than its client reads, and what comes in, as it is taken."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

from portbook.doors.http.request import RequestHead
from portbook.doors.http.response import Reply
from portbook.doors.http.server.deadlines import MIN_READ_BYTES
from portbook.doors.http.server.request_reader import RequestReader
from portbook.doors.http.server.response_writer import LAST_CHUNK, OLD, chunk, document, stream_head

__all__ = ["ClientInput", "ClientOutput", "limit_unsent"]

# What comes in on one connection, no faster than it is taken.

# What a client may send ahead of its turn before its connection is no longer read.
_MAX_AHEAD: Final = 16_384


class ClientInput:
    """The reading end of one connection."""

    __slots__ = ("_transport", "is_paused", "reader")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_paused = False
        """Whether nothing is read from the client now."""
        self.reader = RequestReader()

    def hold_back(self) -> None:
        """Read no more from the client if much has come ahead of its turn."""
        is_much = self.reader.unread_bytes > _MAX_AHEAD
        if is_much and not self.is_paused and not self._transport.is_closing():
            self.is_paused = True
            self._transport.pause_reading()

    def read_on(self) -> None:
        """Read from the client again."""
        if self.is_paused and not self._transport.is_closing():
            self.is_paused = False
            self._transport.resume_reading()


# What may wait to be read by the client before nothing more is written, or taken from it.
_MAX_UNREAD: Final = 65_536

# What the system may hold that it has not sent. Otherwise it takes megabytes for each client that does not
# read, and nobody can see that a slow one reads.
_MAX_UNSENT: Final = 131_072


def limit_unsent(transport: asyncio.BaseTransport) -> None:
    """Let the system hold little that it has not sent; a Unix socket holds little anyway."""
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family != socket.AF_UNIX:
        with suppress(OSError):  # the client has left already
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT)


class ClientOutput:
    """The writing end of one connection."""

    __slots__ = ("_drained", "_latest_bytes", "_left", "_transport", "is_stuck")

    def __init__(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=_MAX_UNREAD)
        self._transport = transport
        self._drained: asyncio.Future[None] | None = None
        self._latest_bytes = 0
        self._left = 0
        self.is_stuck = False
        """Whether much waits to be read by the client."""

    def write(self, data: bytes) -> None:
        """Write what is left to the transport to send."""
        if not self._transport.is_closing():
            self._latest_bytes = len(data)
            self._transport.write(data)

    @property
    def held_bytes(self) -> int:
        """Return what is held for the client: a transport keeps the whole of what it has sent a part of."""
        return max(self._latest_bytes, self._transport.get_write_buffer_size())

    def hold(self) -> None:
        """Write no more: much waits to be read by the client."""
        self.is_stuck = True
        self._left = self._transport.get_write_buffer_size()

    def has_moved(self) -> bool:
        """Return whether the client has read a fair part of what waits since this was last asked."""
        left, self._left = self._left, self._transport.get_write_buffer_size()
        return left - self._left >= MIN_READ_BYTES

    async def send(self, reply: Reply, more: bytes, date: bytes, to: RequestHead) -> None:
        """Send a reply to a request, with `more` headers; a stream as it comes, and as the client reads."""
        is_head = to.method == "HEAD"
        if reply.stream is None or is_head:
            self.write(document(reply, more, date, is_head=is_head))
            return
        in_chunks = to.version != OLD
        self.write(stream_head(reply, more, date, in_chunks=in_chunks))

        async def write_piece(data: bytes) -> None:
            if data:
                self.write(chunk(data) if in_chunks else data)
            if self.is_stuck:
                await self._unstuck()

        await reply.stream(write_piece)
        if in_chunks:
            self.write(LAST_CHUNK)

    def resume(self) -> None:
        """Go on: the client has read."""
        self.is_stuck = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    async def _unstuck(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()
        await self._drained
