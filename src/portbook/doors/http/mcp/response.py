"""The response to one request at `/mcp`: a JSON document, or a stream of events.

A call that sends nothing before its answer is answered with JSON. A call that sends notifications, or takes
long, is answered with a stream. In a session the call continues if the client disconnects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from portbook.doors.eager import Remainder
from portbook.doors.http.accept import Accepts
from portbook.doors.http.asgi import Headers, Receive, Send
from portbook.doors.http.mcp.live_session import LiveSession
from portbook.doors.http.mcp.resumable_stream import EventStream, StreamPosition
from portbook.doors.http.request import has_left
from portbook.doors.http.response import send_answer
from portbook.mcp.connection import Key, Work
from portbook.mcp.from_any_thread import run_on
from portbook.model import Answer
from portbook.stages.state import CallState

__all__ = ["McpResponse", "send_stream"]

# After this wait a stream is opened, to show that the server is alive; sooner where it starts with an event
# id, for until then a broken connection loses the answer.
_PATIENCE_S: Final = 10.0
_PRIMED_PATIENCE_S: Final = 1.0

_STREAM_HEADERS: Final[Headers] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

Running = dict[asyncio.Task[Answer], Key | None]


class McpResponse:
    """The response to one request, while its call runs."""

    __slots__ = ("_live", "_loop", "_receive", "_running", "_send", "_stream", "accepts")

    def __init__(
        self,
        receive: Receive,
        send: Send,
        accepts: Accepts,
        running: Running,
        live: LiveSession | None = None,
    ) -> None:
        """Respond through `send`; a call that waits is added to `running`, or to its session's calls."""
        self.accepts = accepts
        self._receive = receive
        self._send = send
        self._running = running if live is None else live.running
        self._live = live
        self._stream: EventStream | None = None  # made with the first message: most calls send none
        self._loop = asyncio.get_running_loop()

    def emit(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Send a message before the answer, from any thread; nothing if the client accepts no stream.

        With `on_room`, it is left to the sender while the client has much to read.
        """
        if not self.accepts.events:
            return True
        if on_room is not None:
            return self._opened().emit(message, is_wanted, is_vital=is_vital, on_room=on_room)
        run_on(self._loop, self._emit_now, message, is_wanted, is_vital)
        return True

    def let_go(self) -> None:
        """Disconnect the client, if it can resume for the answer. From any thread."""
        if self._live is not None and self.accepts.events:
            run_on(self._loop, self._let_go_now)

    async def outcome(self, work: CallState | Work) -> Answer | None:
        """Return the answer to send as a document; None if a stream was sent, or the client left."""
        if isinstance(work, CallState):
            return await self._outcome_now(work.answer())
        # Most calls never wait, and need no task of their own.
        try:
            waiting_for = work.answering.send(None)
        except StopIteration as ended:
            return await self._outcome_now(ended.value)
        call = self._start(work, waiting_for)
        leaving = self._loop.create_task(has_left(self._receive))
        try:
            return await self._waited(call, leaving)
        finally:
            leaving.cancel()
            if self._live is None and not call.done():
                call.cancel()  # without a session the client cannot resume: it has given the call up
                await asyncio.wait((call,))

    async def _outcome_now(self, answer: Answer) -> Answer | None:
        """Return an answer that is there already, unless a stream has begun: then it ends with the answer."""
        if self._stream is None or not self._stream.end_position:
            return answer
        self._stream.end(answer.body)
        await self._send_stream(self._stream, None)
        return None

    async def send(self, answer: Answer, more: Headers | None = None) -> None:
        """Send an answer as a document, or as a stream if the client accepts only that."""
        if answer.body is None or answer.status != 200 or self.accepts.json:
            await send_answer(self._send, answer, more)
            return
        stream = EventStream()
        stream.end(answer.body)
        await send_stream(self._send, self._receive, StreamPosition(stream), more=more)

    def _emit_now(self, message: bytes, is_wanted: Callable[[], bool], is_vital: bool) -> None:
        self._opened().emit(message, is_wanted, is_vital=is_vital)

    def _let_go_now(self) -> None:
        self._opened().let_go()

    def _opened(self) -> EventStream:
        if self._stream is None:
            self._stream = EventStream() if self._live is None else self._live.open_stream()
        return self._stream

    def _start(self, work: Work, waiting_for: object) -> asyncio.Task[Answer]:
        """Run the rest of a call in its own task: the client may disconnect, and resume for the answer."""
        stream = self._opened()

        async def finish() -> Answer:
            answer = await Remainder(work.answering, waiting_for)
            stream.end(answer.body)
            return answer

        def ended(call: asyncio.Task[Answer]) -> None:
            # A callback, because a task that is cancelled before its first step runs none of its own code.
            work.answering.close()
            stream.end(None)
            del self._running[call]
            if not call.cancelled():
                call.exception()  # retrieved, so that the loop does not report it

        call = self._loop.create_task(finish())
        self._running[call] = work.key
        call.add_done_callback(ended)
        return call

    async def _waited(self, call: asyncio.Task[Answer], leaving: asyncio.Task[None]) -> Answer | None:
        stream = self._opened()
        if not self.accepts.events:
            await asyncio.wait((call, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                return None
            return Answer(None, 202) if call.cancelled() else call.result()
        news = self._loop.create_task(stream.wait(_PRIMED_PATIENCE_S if stream.is_primed else _PATIENCE_S))
        try:
            await asyncio.wait((call, leaving, news), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        if call.done() and not call.cancelled() and stream.end_position <= 1:  # the answer alone
            return call.result()
        if leaving.done():
            stream.discard()  # the client has no event id to resume from
        elif call.cancelled() and not stream.end_position:  # cancelled: a stream without an answer
            await _start(self._send, None)
            await _end(self._send)
        else:
            await self._send_stream(stream, leaving)
        return None

    async def _send_stream(self, stream: EventStream, leaving: asyncio.Task[None] | None) -> None:
        if self._live is not None:
            self._live.keep_stream(stream)
        position = StreamPosition(stream, is_primed=stream.is_primed, may_be_sent_away=True)
        await send_stream(self._send, self._receive, position, leaving=leaving)


async def send_stream(
    send: Send,
    receive: Receive,
    position: StreamPosition,
    *,
    may_read: Callable[[], bool] = lambda: True,
    leaving: asyncio.Task[None] | None = None,
    more: Headers | None = None,
) -> None:
    """Send events from `position` on, until the stream ends or the client leaves or may no longer read."""

    async def write(data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})

    await _start(send, more)
    loop = asyncio.get_running_loop()
    left = leaving or loop.create_task(has_left(receive))
    copying = loop.create_task(position.stream.copy_to(write, position, may_read))
    try:
        await asyncio.wait((copying, left), return_when=asyncio.FIRST_COMPLETED)
        if copying.done():
            copying.result()  # raises what failed
            await _end(send)
    finally:
        if leaving is None:
            left.cancel()
        copying.cancel()
        await asyncio.wait((copying,))


async def _start(send: Send, more: Headers | None) -> None:
    headers = [*_STREAM_HEADERS, *(more or [])]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _end(send: Send) -> None:
    await send({"type": "http.response.body", "body": b""})
