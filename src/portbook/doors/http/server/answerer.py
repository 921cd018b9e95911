"""Answers the requests of one connection, one at a time: at once, at the end of the loop's turn, or later."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from portbook.doors.http.body_check import cut_off
from portbook.doors.http.memory_limits import MessageMemory
from portbook.doors.http.request import RequestHead
from portbook.doors.http.response import HeldReply, Replied, Reply
from portbook.doors.http.router import Handling, begin_reply, finish_reply, released
from portbook.doors.http.server.deadlines import Phase
from portbook.doors.http.server.flow_control import ClientOutput
from portbook.doors.http.server.open_connections import ConnectionState, OpenConnections
from portbook.doors.http.server.response_writer import NEW, OLD, connection_line, document
from portbook.errors import Refused
from portbook.executors.coroutines import start_now
from portbook.wire.lines_and_size_limit import Frame

__all__ = ["Answerer", "AskedConnection"]

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
