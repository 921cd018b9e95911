"""The reply to one request at `/mcp`: a JSON document, or a stream of events.

A call that sends nothing before its answer is answered with JSON. A call that sends notifications, or takes
long, is answered with a stream. In a session the call continues if the client disconnects.
"""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable
from typing import Final

from portbook.doors.http.mcp.resumable_streams import EventStream, StreamPosition
from portbook.doors.http.mcp.sessions_in_memory import LiveSession
from portbook.doors.http.memory_limits import MessageMemory
from portbook.doors.http.request import Accepts
from portbook.doors.http.response import Reply, Write, lines_of, reply_to
from portbook.doors.taskless_calls import Remainder
from portbook.mcp.messages_from_client import Key, Work
from portbook.mcp.report_queue import run_on
from portbook.model import Answer
from portbook.stages.state import CallState

__all__ = ["STREAM_LINES", "McpResponse", "event_reply"]

# After this wait a stream is opened, to show that the server is alive; sooner where it starts with an event
# id, for until then a broken connection loses the answer.
_PATIENCE_S: Final = 10.0
_PRIMED_PATIENCE_S: Final = 1.0

STREAM_LINES: Final = lines_of(
    [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
)

Running = dict[asyncio.Task[Answer], Key | None]


class McpResponse:
    """The response to one request, while its call runs."""

    __slots__ = ("_call", "_key", "_live", "_loop", "_memory", "_running", "_stream", "accepts")

    def __init__(
        self,
        accepts: Accepts,
        running: Running,
        live: LiveSession | None = None,
        memory: MessageMemory | None = None,
    ) -> None:
        """Respond in a form that is accepted; a call that waits joins `running`, or its session's calls.

        It holds the `memory` of its message until it has ended, even if its client left before.
        """
        self._memory = memory
        self.accepts = accepts
        self._running = running if live is None else live.running
        self._live = live
        self._stream: EventStream | None = None  # made with the first message: most calls send none
        self._call: asyncio.Task[Answer] | None = None
        self._key: Key | None = None
        self._loop = get_running_loop()

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
        """Return the answer to send as a document; None where `streamed` sends it."""
        if isinstance(work, CallState):
            return self._outcome_now(work.reply())
        # Most calls never wait, and need no task of their own.
        try:
            waiting_for = work.answering.send(None)
        except StopIteration as ended:
            return self._outcome_now(ended.value)
        self._call = call = self._start(work, waiting_for)
        try:
            return await self._waited(call)
        except asyncio.CancelledError:  # the client left, and has no event id to resume from
            self._opened().discard()
            await self._give_up()
            raise

    def _outcome_now(self, answer: Answer) -> Answer | None:
        """Return an answer that is there already, unless a stream has begun: then it ends with the answer."""
        if self._stream is None or not self._stream.end_position:
            return answer
        self._stream.end(answer.body)
        return None

    def reply(self, answer: Answer, more: bytes = b"") -> Reply:
        """Return an answer as a document, or as a stream if the client accepts only that."""
        if answer.body is None or answer.status != 200 or self.accepts.json:
            return reply_to(answer, more)
        stream = EventStream()
        stream.end(answer.body)
        return event_reply(StreamPosition(stream), more=more)

    def worded(self, answer: Answer) -> Reply:
        """Return the reply with an answer that is there already, and with what was sent before it."""
        if self._stream is None and self.accepts.json:  # nearly always
            return reply_to(answer)
        return self.replied(self._outcome_now(answer))

    def replied(self, answer: Answer | None, after: Callable[[], Awaitable[None]] | None = None) -> Reply:
        """Return the reply to an outcome; where that is streamed, `after` runs when it is over."""
        return self.streamed(after) if answer is None else self.reply(answer)

    def streamed(self, after: Callable[[], Awaitable[None]] | None) -> Reply:
        """Return what the call sends, and its answer, as a stream; `after` runs when it is over."""
        stream = self._opened()
        keeping = None if self._live is None else self._live.keep_stream(stream, self._key)
        is_over = stream.is_ended and not stream.end_position  # cancelled: nothing to resume for
        is_primed = stream.is_primed and not is_over
        position = StreamPosition(stream, is_primed=is_primed, may_be_sent_away=True)

        async def copy(write: Write) -> None:
            try:
                if keeping is not None:
                    await asyncio.wait((keeping,))
                await stream.copy_to(write, position)
            finally:
                await self._give_up()
                if after is not None:
                    await after()

        return Reply(200, STREAM_LINES, stream=copy)

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
            if self._memory is not None:
                self._memory.release()
            del self._running[call]
            if self._live is not None:
                self._live.only_waiting.discard(call)
            if not call.cancelled():
                call.exception()  # retrieved, so that the loop does not report it

        self._key = work.key
        if self._memory is not None:
            self._memory.hold()
        call = self._loop.create_task(finish())
        self._running[call] = work.key
        if work.only_waits and self._live is not None:
            self._live.only_waiting.add(call)
        call.add_done_callback(ended)
        return call

    async def _waited(self, call: asyncio.Task[Answer]) -> Answer | None:
        """Return the answer if it comes before anything else does."""
        stream = self._opened()
        if not self.accepts.events:
            await asyncio.wait((call,))
            return Answer(None, 202) if call.cancelled() else call.result()
        news = self._loop.create_task(stream.wait(_PRIMED_PATIENCE_S if stream.is_primed else _PATIENCE_S))
        try:
            await asyncio.wait((call, news), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        if call.done() and not call.cancelled() and stream.end_position <= 1:  # the answer alone
            return call.result()
        return None

    async def _give_up(self) -> None:
        """Cancel a call without a session: its client cannot resume for the answer."""
        call = self._call
        if self._live is None and call is not None and not call.done():
            call.cancel()
            await asyncio.wait((call,))


def event_reply(
    position: StreamPosition,
    *,
    may_read: Callable[[], bool] = lambda: True,
    more: bytes = b"",
) -> Reply:
    """Return the events from `position` on, until the stream ends or the client may no longer read."""

    async def copy(write: Write) -> None:
        await position.stream.copy_to(write, position, may_read)

    return Reply(200, STREAM_LINES + more, stream=copy)
