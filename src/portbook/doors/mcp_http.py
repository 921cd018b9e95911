"""`/mcp`: the Model Context Protocol over HTTP, of both eras, at one address.

A request that names a revision without a handshake stands for itself. Any other belongs to a session, which
`initialize` opens and the header `Mcp-Session-Id` names. A request that says nothing before its answer gets
that as JSON; one that does gets a stream of events, and so does one that takes its time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from portbook.boundary import Boundary
from portbook.canonical import fingerprint
from portbook.conversation import Work
from portbook.doors.asgi import App, Headers, Receive, Scope, Send, is_own_host, plain
from portbook.doors.mcp_sessions import LiveSession, Sessions
from portbook.doors.mcp_streams import Stream
from portbook.doors.requests import arrival_of, has_left, read_message, send_answer
from portbook.doors.stepping import Remainder
from portbook.errors import Reason
from portbook.model import Answer, Arrival
from portbook.protocol.headers import VERSION
from portbook.protocol.revisions import STATELESS_REVISIONS
from portbook.wire.framing import Frame

__all__ = ["ROUTE", "mcp"]

ROUTE: Final = "/mcp"

# A client that has waited so long is shown that the server is still there.
_PATIENCE_S: Final = 10.0

_SESSION: Final = "mcp-session-id"
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_STREAM_HEADERS: Final[Headers] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def mcp(boundary: Boundary, sessions: Sessions, *, is_exposed: bool) -> dict[str, App]:
    """Return the applications behind the route, by HTTP verb."""
    door = _McpDoor(boundary, sessions, is_exposed=is_exposed)
    return {"POST": door.post, "GET": door.get, "DELETE": door.delete}


class _McpDoor:
    def __init__(self, boundary: Boundary, sessions: Sessions, *, is_exposed: bool) -> None:
        self._boundary = boundary
        self._sessions = sessions
        self._is_exposed = is_exposed
        self._running: set[asyncio.Task[Answer]] = set()

    async def post(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one message, or a batch of them."""
        arrival = _arrival(scope)
        accepts = _accepted(scope)
        frame = await read_message(scope, receive, is_exposed=self._is_exposed)
        if frame is None:
            return
        if isinstance(frame, Reason) or not accepts & {_JSON, _EVENTS}:
            reason = frame if isinstance(frame, Reason) else Reason.NOT_ACCEPTABLE
            await send_answer(send, await self._boundary.refuse(reason, arrival))
            return
        headers = arrival.headers or {}
        name = None if _is_stateless(arrival) else headers.get(_SESSION)
        if name is None:
            await self._answer_newcomer(frame, arrival, accepts, receive, send)
            return
        live = self._sessions.find(name, arrival)
        if live is None:
            await send_answer(send, await self._boundary.refuse(Reason.UNKNOWN_SESSION, arrival))
            return
        arrival = arrival._replace(session=arrival.session or fingerprint(name)[:32])  # not the secret itself
        await self._answer_session(live, frame, arrival, accepts, receive, send)

    async def get(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open the stream of what belongs to no request, or go on with one that was left."""
        live = await self._entered(scope, send, "session.listen", {_EVENTS})
        if live is None:
            return
        last_event = (dict(scope["headers"])).get(b"last-event-id", b"").decode("latin-1")
        found = live.resume(last_event) if last_event else (live.standalone, live.standalone.end_position)
        await _start_stream(send)
        if found is not None:
            await _copy(found[0], send, receive, found[1])
        await _end_stream(send)

    async def delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        """End a session."""
        live = await self._entered(scope, send, "session.end", set())
        if live is not None:
            await self._sessions.forget(live)
            await send_answer(send, Answer(None, 204))

    async def _entered(self, scope: Scope, send: Send, method: str, wanted: set[str]) -> LiveSession | None:
        """Return the session that a request without a message is for; where it is for none, say so."""
        arrival = _arrival(scope)
        if not is_own_host(dict(scope["headers"]), is_exposed=self._is_exposed):
            await send_answer(send, await self._boundary.refuse(Reason.FOREIGN_HOST, arrival))
            return None
        name = (arrival.headers or {}).get(_SESSION)
        if _is_stateless(arrival) or name is None:
            await plain(send, 405, "Without a session, this takes POST.", [(b"allow", b"POST")])
            return None
        reason: Reason | None = None
        live = self._sessions.find(name, arrival)
        if live is None:
            reason = Reason.UNKNOWN_SESSION
        elif (arrival.headers or {}).get(VERSION, live.revision_name) != live.revision_name:
            reason = Reason.HEADER_MISMATCH
        elif not wanted <= _accepted(scope):
            reason = Reason.NOT_ACCEPTABLE
        if reason is not None:
            await send_answer(send, await self._boundary.refuse(reason, arrival))
            return None
        told = await self._boundary.tell(method, arrival, lambda tools, policy: {})
        if told.status != 200:
            await send_answer(send, told)
            return None
        return live

    async def _answer_newcomer(
        self, frame: Frame, arrival: Arrival, accepts: set[str], receive: Receive, send: Send
    ) -> None:
        """Answer a message that belongs to no session; it may open one, if it is of an era that has them."""
        stream = Stream()
        if _is_stateless(arrival):
            conversation = self._boundary.converse(arrival, stream.emit, is_official=True)
            work = conversation.receive(frame, arrival)
            answer = await self._finished(work, stream, accepts, receive, send, None)
            if answer is not None:
                await _answer(send, answer, accepts)
            return
        live = self._sessions.begin(arrival)
        work = live.conversation.receive(frame, arrival, stream.emit)
        answer = await self._finished(work, stream, accepts, receive, send, None)
        if answer is None:
            live.close()
            return
        if live.conversation.session.revision is not None:
            await self._sessions.keep(live)
            await send_answer(send, answer, [(_SESSION.encode(), live.id.encode())])
        else:
            await _answer(send, answer, accepts)

    async def _answer_session(
        self,
        live: LiveSession,
        frame: Frame,
        arrival: Arrival,
        accepts: set[str],
        receive: Receive,
        send: Send,
    ) -> None:
        stream = live.open_stream()
        work = live.conversation.receive(frame, arrival, stream.emit, stream.let_go)
        if work.cancels is not None:
            live.cancel(work.cancels)
        answer = await self._finished(work, stream, accepts, receive, send, live)
        await self._sessions.keep(live)
        if answer is not None:
            await _answer(send, answer, accepts)

    async def _finished(
        self,
        work: Work,
        stream: Stream,
        accepts: set[str],
        receive: Receive,
        send: Send,
        live: LiveSession | None,
    ) -> Answer | None:
        """Return the answer to be sent as one; None where it was sent as a stream, or nobody waits for it."""
        # Most calls never wait for anything, and need no task of their own.
        try:
            waiting_for = work.answering.send(None)
        except StopIteration as ended:
            answer: Answer = ended.value
            if not stream.has_messages or _EVENTS not in accepts:
                return answer
            stream.end(answer.body)
            await _send_stream(stream, send, receive)
            return None
        call = self._start(work, waiting_for, stream, live)
        leaving = asyncio.get_running_loop().create_task(has_left(receive))
        try:
            return await self._waited(call, leaving, stream, accepts, send, live)
        finally:
            leaving.cancel()
            if live is None and not call.done():
                call.cancel()  # whoever has no session to come back to has given it up
                await asyncio.wait((call,))

    async def _waited(
        self,
        call: asyncio.Task[Answer],
        leaving: asyncio.Task[None],
        stream: Stream,
        accepts: set[str],
        send: Send,
        live: LiveSession | None,
    ) -> Answer | None:
        loop = asyncio.get_running_loop()
        news = loop.create_task(stream.wait(_PATIENCE_S))
        try:
            await asyncio.wait((call, leaving, news), return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
        is_answer_alone = stream.end_position <= 1 or _EVENTS not in accepts
        if call.done() and not call.cancelled() and is_answer_alone:
            return call.result()
        if leaving.done():
            return None
        if _EVENTS not in accepts:
            await asyncio.wait((call, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                return None
            return Answer(None, 202) if call.cancelled() else call.result()
        if call.cancelled() and not stream.has_messages:  # taken back: a stream without an answer
            await _start_stream(send)
            await _end_stream(send)
            return None
        if live is not None:
            live.keep_stream(stream.name, stream)
        await _start_stream(send)
        copying = loop.create_task(stream.copy_to(lambda data: _write(send, data)))
        try:
            await asyncio.wait((copying, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            copying.cancel()
        if not leaving.done():
            await _end_stream(send)
        return None

    def _start(
        self, work: Work, waiting_for: object, stream: Stream, live: LiveSession | None
    ) -> asyncio.Task[Answer]:
        """Run the rest of a call by itself: whoever asked may leave, and come back for the answer."""

        async def finish() -> Answer:
            answer = await Remainder(work.answering, waiting_for)
            stream.end(answer.body)
            return answer

        call = asyncio.get_running_loop().create_task(finish())
        running = self._running if live is None else live.running
        if isinstance(running, set):
            running.add(call)
        else:
            running[call] = work.key

        def ended(call: asyncio.Task[Answer]) -> None:
            # A callback, because a task that is cancelled before its first step runs none of its own code.
            work.answering.close()
            stream.end(None)
            if isinstance(running, set):
                running.discard(call)
            else:
                running.pop(call, None)
            if not call.cancelled():
                call.exception()  # looked at, so that the loop does not report it

        call.add_done_callback(ended)
        return call


async def _answer(send: Send, answer: Answer, accepts: set[str]) -> None:
    if answer.body is None or answer.status != 200 or _JSON in accepts:
        await send_answer(send, answer)
        return
    stream = Stream()
    stream.end(answer.body)
    await _start_stream(send)
    await stream.copy_to(lambda data: _write(send, data))
    await _end_stream(send)


async def _send_stream(stream: Stream, send: Send, receive: Receive) -> None:
    await _start_stream(send)
    await _copy(stream, send, receive, None)
    await _end_stream(send)


async def _copy(stream: Stream, send: Send, receive: Receive, position: int | None) -> None:
    """Send events until the stream ends, or its reader leaves."""
    loop = asyncio.get_running_loop()
    copying = loop.create_task(stream.copy_to(lambda data: _write(send, data), position))
    leaving = loop.create_task(has_left(receive))
    try:
        await asyncio.wait((copying, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        copying.cancel()
        leaving.cancel()


async def _start_stream(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})


async def _write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _end_stream(send: Send) -> None:
    await send({"type": "http.response.body", "body": b""})


def _arrival(scope: Scope) -> Arrival:
    """Return how a request came in, with what its headers say of its message; of two, both are said."""
    said: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name.startswith(b"mcp-"):
            key, text = name.decode("latin-1"), value.decode("latin-1").strip()
            said[key] = f"{said[key]}, {text}" if key in said else text
    return arrival_of(scope, ROUTE)._replace(headers=said)


def _is_stateless(arrival: Arrival) -> bool:
    return (arrival.headers or {}).get(VERSION) in STATELESS_REVISIONS


def _accepted(scope: Scope) -> set[str]:
    """Return which of the two forms of an answer a request allows; both where it does not say."""
    given = dict(scope["headers"]).get(b"accept")
    if given is None:
        return {_JSON, _EVENTS}
    ranges = {part.partition(";")[0].strip().lower() for part in given.decode("latin-1").split(",")}
    accepted: set[str] = set()
    for form in (_JSON, _EVENTS):
        if ranges & {"*/*", form, form.partition("/")[0] + "/*"}:
            accepted.add(form)
    return accepted
