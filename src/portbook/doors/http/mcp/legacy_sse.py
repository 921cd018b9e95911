"""HTTP+SSE, the transport of 2024-11-05: `GET /sse` opens a stream, `POST /messages` sends a message to it.

The first event of a stream says where to send messages. Everything else, answers included, comes as events.
A session lives as long as its stream, and belongs to the key that opened it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qs

from portbook.boundary import Boundary
from portbook.doors.http.mcp.json_or_stream_reply import STREAM_LINES
from portbook.doors.http.mcp.resumable_streams import EventStream, StreamPosition
from portbook.doors.http.mcp.sessions import Sessions
from portbook.doors.http.mcp.sessions_in_memory import label_of
from portbook.doors.http.memory_limits import MessageMemory
from portbook.doors.http.request import InboundRequest, RequestHead, accepted, arrival_of
from portbook.doors.http.response import Reply, Write, reply_to
from portbook.doors.http.router import Route
from portbook.errors import Reason, Refused
from portbook.executors.coroutines import start_now
from portbook.mcp.messages_from_client import Key, Work
from portbook.model import Answer, Arrival
from portbook.stages.state import CallState
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame

__all__ = ["MESSAGES", "SSE", "legacy_sse"]

SSE: Final = "/sse"
MESSAGES: Final = "/messages"

_ID: Final = "session_id"
_TASK: Final = "portbook-request"

# Streams of all clients: half of all connections. Calls of one stream at a time.
_MAX_STREAMS: Final = 1024
_MAX_RUNNING: Final = 64


def legacy_sse(
    boundary: Boundary, sessions: Sessions, on_close: Callable[[Callable[[], None]], object]
) -> dict[tuple[str, str], Route]:
    """Return the routes; `on_close` takes what ends streams, and `sessions` the calls that outlast them."""
    door = _SseDoor(boundary, sessions.is_known)
    on_close(door.close)
    sessions.await_also(door.running)
    return {
        ("GET", SSE): Route(door.listen, door.refuse),
        ("POST", MESSAGES): Route(door.post, door.refuse, takes_message=True),
    }


class _SseSession:
    """One stream, and the calls whose answers go to it."""

    def __init__(self, boundary: Boundary, arrival: Arrival) -> None:
        self.id = secrets.token_urlsafe(32)
        self.key = arrival.key
        self.label = label_of(self.id)
        self.stream = EventStream()
        self.running: dict[asyncio.Task[Answer], Key | None] = {}
        self.is_ending = False
        self._connection = boundary.connect(arrival, self.stream.emit, is_official=True, cancel=self._cancel)

    def is_of(self, key: str | None) -> bool:
        """Return whether the holder of `key` opened it."""
        if self.key is None or key is None:
            return self.key is key
        return secrets.compare_digest(self.key.encode(), key.encode())

    def receive(self, frame: Frame, arrival: Arrival, memory: MessageMemory | None) -> None:
        """Run a message, which holds its memory meanwhile; its answer goes to the stream."""
        work = self._connection.receive(frame, replace(arrival, session=arrival.session or self.label))
        if isinstance(work, CallState):
            self._send(work.reply())
        else:
            self._start(work, memory)

    def finish(self) -> None:
        """End the stream when the calls that run are answered on it; nothing more can be asked."""
        self.is_ending = True
        self._connection.close()
        self._end_when_done()

    def close(self) -> None:
        """Cancel what is running: nobody is left to read the answers."""
        for task in tuple(self.running):
            task.cancel()
        self._connection.close()
        self.stream.discard()

    def _start(self, work: Work, memory: MessageMemory | None) -> None:
        task = start_now(work.answering, _TASK)
        self.running[task] = work.key
        task.add_done_callback(self._ended)
        if memory is not None:
            memory.hold()
            task.add_done_callback(lambda _: memory.release())

    def _ended(self, task: asyncio.Task[Answer]) -> None:
        del self.running[task]
        if not task.cancelled() and task.exception() is None:
            self._send(task.result())
        self._end_when_done()

    def _end_when_done(self) -> None:
        if self.is_ending and not self.running:
            self.stream.end(None)

    def _send(self, answer: Answer) -> None:
        if answer.body is not None and not answer.is_notification:
            self.stream.emit(answer.body, lambda: True, is_vital=True)

    def _cancel(self, key: Key) -> bool:
        found = [task for task, its_key in self.running.items() if its_key == key]
        for task in found:
            task.cancel()
        return bool(found)


class _SseDoor:
    def __init__(self, boundary: Boundary, is_known: Callable[[str | None], bool]) -> None:
        self._boundary = boundary
        self._is_known = is_known
        self._sessions: dict[str, _SseSession] = {}
        self._is_closed = False

    async def listen(self, request: InboundRequest) -> Reply:
        """Open a stream, and a session with it."""
        arrival = arrival_of(request.head, SSE)
        if not accepted(request.head.fields.get(b"accept")).events:
            return await self.refuse(request.head, Refused(Reason.NOT_ACCEPTABLE))
        if len(self._sessions) >= _MAX_STREAMS:
            return await self.refuse(request.head, Refused(Reason.TOO_MANY_STREAMS))
        told = await self._boundary.tell("session.listen", arrival, lambda tools, policy: {})
        if told.status != 200:
            return reply_to(told)
        session = _SseSession(self._boundary, arrival)

        async def copy(write: Write) -> None:
            self._sessions[session.id] = session
            if self._is_closed:
                session.finish()
            try:
                await write(f"event: endpoint\ndata: {MESSAGES}?{_ID}={session.id}\n\n".encode())
                position = StreamPosition(session.stream)
                await session.stream.copy_to(write, position, lambda: self._is_known(session.key))
            finally:
                del self._sessions[session.id]
                session.close()
                self._boundary.end_session(session.label)

        return Reply(200, STREAM_LINES, stream=copy)

    async def post(self, request: InboundRequest) -> Reply:
        """Take a message; its answer comes on the stream of its session."""
        head, frame, _, memory = request
        arrival = arrival_of(head, MESSAGES)
        [name] = parse_qs(head.query.decode("latin-1")).get(_ID, [""])[:1]
        session = self._sessions.get(name)
        if session is None or not session.is_of(arrival.key):
            return await self.refuse(head, Refused(Reason.UNKNOWN_SESSION))
        if frame is OVERSIZE:
            return await self.refuse(head, Refused(Reason.FRAME_TOO_LARGE))
        if session.is_ending or len(session.running) >= _MAX_RUNNING:
            return await self.refuse(head, Refused(Reason.BUSY))
        session.receive(frame, arrival, memory)
        return reply_to(Answer(None, 202))

    def running(self) -> list[asyncio.Task[Answer]]:
        """Return the calls that run."""
        return [task for session in self._sessions.values() for task in session.running]

    def close(self) -> None:
        """End every stream, each after the answers to the calls that run."""
        self._is_closed = True
        for session in tuple(self._sessions.values()):
            session.finish()

    async def refuse(self, head: RequestHead, refused: Refused) -> Reply:
        """Answer a request that is refused, and record it."""
        return reply_to(await self._boundary.refuse(refused, arrival_of(head, head.path), is_mcp=True))
