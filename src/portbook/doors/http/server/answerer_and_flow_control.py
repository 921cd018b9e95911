"""Answers the requests of one connection, one at a time: at once, at the end of the loop's turn, or later.

What goes out is no faster than the client reads, and what comes in no faster than it is taken.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final, Protocol

from portbook.doors.http.memory_limits import MessageMemory
from portbook.doors.http.request import RequestHead, cut_off
from portbook.doors.http.response import HeldReply, Replied, Reply
from portbook.doors.http.router import Handling, begin_reply, finish_reply, released
from portbook.doors.http.server.connection_limits_deadlines_and_overload import MIN_READ_BYTES, Phase
from portbook.doors.http.server.open_connections import ConnectionState, OpenConnections
from portbook.doors.http.server.request_parser import RequestReader
from portbook.doors.http.server.response_writer import (
    LAST_CHUNK,
    NEW,
    OLD,
    chunk,
    connection_line,
    document,
    stream_head,
)
from portbook.errors import Refused
from portbook.executors.coroutines import start_now
from portbook.wire.lines_and_size_limit import Frame

__all__ = ["Answerer", "AskedConnection", "ClientInput", "ClientOutput", "limit_unsent"]

_TASK: Final = "portbook-request"

# Taken from here by name: to find a member of an enumeration takes as long as to call a function.
_ANSWER: Final = Phase.ANSWER

_NO_HEAD: Final = RequestHead("", "", b"", [])


class AskedConnection(Protocol):
    """A connection whose requests are answered."""

    def answered(self, *, is_whole: bool = True) -> None:
        """Go on after an answer, or close after a part of one."""
        ...

    def take_next(self) -> None:
        """Take the next request, after an answer that did not come at once."""
        ...


class Answerer:
    """The request of a connection that is being answered."""

    __slots__ = ("_connection", "_handling", "_head", "_out", "_shared", "_state", "closes", "task")

    _handling: Handling

    def __init__(
        self, connection: AskedConnection, shared: OpenConnections, state: ConnectionState, out: ClientOutput
    ) -> None:
        self._connection = connection
        self._shared = shared
        self._state = state
        self._out = out
        self._head = _NO_HEAD
        self.closes = False
        """Whether the connection closes after the answer."""
        self.task: asyncio.Task[None] | None = None
        """What the answer waits for."""

    def take(self, head: RequestHead, *, closes: bool) -> Handling:
        """Take a request, to be answered next; return how."""
        if head is not self._head:  # most clients send the same one again
            self._head, self._handling = head, head.derive(self._shared.handle)
        handling = self._handling
        self.closes = closes or handling.closes
        return handling

    def answer(self, body: Frame | Refused, memory: MessageMemory | None = None) -> None:
        """Answer the request with this body, which takes this `memory`, or one whose body is refused."""
        self._state.enter(_ANSWER)
        replied = begin_reply(self._handling, self._head, body, memory)
        if isinstance(replied, HeldReply):
            self._shared.held.add(self, replied)
        else:
            self._reply(replied)

    def forget(self) -> None:
        """Forget the head of the last request."""
        self._head = _NO_HEAD

    def release(self, held: HeldReply) -> None:
        """Send a reply whose record is written."""
        reply = released(held)
        if reply.stream is None:
            self._write(reply)
            self._connection.answered()
        else:
            self._reply(reply)
        self._connection.take_next()

    def cancel(self, *, has_begun_body: bool) -> None:
        """Stop answering: the client has left. A message that it had begun to send is recorded."""
        if self.task is not None:
            self.task.cancel()
        elif has_begun_body:
            replied = begin_reply(self._handling, self._head, cut_off())
            task = start_now(self._send(replied), _TASK)
            self.task = None if task.done() else task

    def _reply(self, replied: Replied) -> None:
        if isinstance(replied, Reply) and replied.stream is None:
            self._write(replied)
            self._connection.answered()
            return
        task = start_now(self._send(replied), _TASK)
        if task.done():
            self._ended(task)
        else:
            self.task = task
            task.add_done_callback(self._ended_late)

    async def _send(self, replied: Replied) -> None:
        reply = await finish_reply(replied)
        if reply.stream is None:
            self._write(reply)
        elif self._state.phase is _ANSWER:
            await self._out.send(reply, self._lines_beside(reply), self._shared.date, self._head)

    def _write(self, reply: Reply) -> None:
        """Write a reply that is there whole, unless the client has left."""
        if self._state.phase is _ANSWER:
            head = self._head
            is_last = self.closes or reply.closes
            more = self._handling.more if head.version == NEW and not is_last else self._lines_beside(reply)
            date = self._shared.date
            is_head = head.method == "HEAD"
            self._out.write(
                document(reply, more, date, is_head=True) if is_head else document(reply, more, date)
            )

    def _lines_beside(self, reply: Reply) -> bytes:
        """Return the headers beside those of a reply, with what they say about the connection."""
        # In HTTP/1.0, a stream ends with its connection.
        if reply.closes or (reply.stream is not None and self._head.version == OLD):
            self.closes = True
        return self._handling.more + connection_line(self._head, is_last=self.closes)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connection.answered(is_whole=not task.cancelled() and task.exception() is None)

    def _ended_late(self, task: asyncio.Task[None]) -> None:
        self.task = None
        self._ended(task)
        self._connection.take_next()


# What goes out on one connection, no faster than its client reads, and what comes in, as it is taken.

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
