"""`/mcp`: the Model Context Protocol over HTTP, of both eras, at one address.

A request that names a revision without a handshake is stateless. All remaining requests belong to a session,
which `initialize` opens and the header `Mcp-Session-Id` names.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from portbook.boundary import Boundary
from portbook.doors.http.accept import Accepts, accepted
from portbook.doors.http.asgi import Receive, Scope, Send
from portbook.doors.http.mcp.live_session import LiveSession
from portbook.doors.http.mcp.response import McpResponse, Running, send_stream
from portbook.doors.http.mcp.sessions import Sessions
from portbook.doors.http.request import arrival_of, headers_of, read_message
from portbook.doors.http.response import plain, send_answer
from portbook.doors.http.router import Route, refuse_method
from portbook.errors import Reason, Refused
from portbook.model import Answer, Arrival
from portbook.protocol.headers import VERSION
from portbook.protocol.revisions import STATELESS_REVISIONS
from portbook.wire.lines import Frame

__all__ = ["ROUTE", "mcp"]

ROUTE: Final = "/mcp"

_SESSION: Final = "mcp-session-id"

# Streams that one caller holds open with GET: half of all connections, the rest is for further callers.
_MAX_LISTENING: Final = 1024


class _Head(NamedTuple):
    """What the headers of a request say, parsed."""

    headers: dict[bytes, bytes]
    arrival: Arrival
    accepts: Accepts
    session: str | None
    """The id of its session; None for a stateless request, or one without a session yet."""
    is_stateless: bool


def mcp(boundary: Boundary, sessions: Sessions) -> dict[str, Route]:
    """Return the routes, by HTTP method."""
    door = _McpDoor(boundary, sessions)
    methods = {"POST": door.post, "GET": door.get, "DELETE": door.delete}
    return {name: Route(serve, door.refuse) for name, serve in methods.items()}


class _McpDoor:
    def __init__(self, boundary: Boundary, sessions: Sessions) -> None:
        self._boundary = boundary
        self._sessions = sessions
        self._running: Running = {}
        self._listening: Counter[str] = Counter()

    async def post(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one message, or a batch."""
        head = _head_of(scope)
        frame = await read_message(head.headers, receive)
        if frame is None:
            return
        if isinstance(frame, Refused):
            await self._refuse(send, frame, head)
        elif not any(head.accepts):
            await self._refuse(send, Refused(Reason.NOT_ACCEPTABLE), head)
        elif head.session is not None:
            live = self._sessions.find(head.session, head.arrival)
            if live is None:
                await self._refuse(send, Refused(self._why_unknown(head)), head)
            else:
                response = McpResponse(receive, send, head.accepts, self._running, live)
                await self._answer_session(live, frame, head.arrival, response)
        else:
            response = McpResponse(receive, send, head.accepts, self._running)
            answer = self._answer_alone if head.is_stateless else self._answer_newcomer
            await answer(frame, head.arrival, response)

    async def get(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open the session's own stream of notifications, or resume a stream after Last-Event-ID."""
        head = _head_of(scope)
        live = await self._entered(scope, head, send, "session.listen", needs_events=True)
        if live is None:
            return
        last_event = head.headers.get(b"last-event-id", b"").decode("latin-1").strip()
        position = live.position_after(last_event or None)
        if position.is_guest and position.stream.is_read:
            await plain(send, 409, "This event has expired, and the stream has a reader. Omit Last-Event-ID.")
            return
        if self._listening[live.bound] >= _MAX_LISTENING and not position.stream.is_read:
            await self._refuse(send, Refused(Reason.TOO_MANY_STREAMS), head)
            return
        key = head.arrival.key
        self._listening[live.bound] += 1
        try:
            await send_stream(send, receive, position, may_read=lambda: self._sessions.may_listen(live, key))
        finally:
            self._listening -= Counter((live.bound,))

    async def delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        """End a session."""
        live = await self._entered(scope, _head_of(scope), send, "session.end")
        if live is not None:
            await self._sessions.forget(live)
            await send_answer(send, Answer(None, 204))

    async def refuse(self, scope: Scope, send: Send, refusal: Refused) -> None:
        """Answer a request whose Host or Origin is refused."""
        await self._refuse(send, refusal, _head_of(scope))

    async def _entered(
        self, scope: Scope, head: _Head, send: Send, method: str, *, needs_events: bool = False
    ) -> LiveSession | None:
        """Return the session of a GET or DELETE; where it has none, answer with the reason."""
        if head.session is None:
            await refuse_method(self.refuse, scope, send, ["POST"], "Without a session")
            return None
        reason: Reason | None = None
        live = self._sessions.find(head.session, head.arrival)
        if live is None:
            reason = self._why_unknown(head)
        elif (head.arrival.headers or {}).get(VERSION, live.revision_name) != live.revision_name:
            reason = Reason.HEADER_MISMATCH
        elif needs_events and not head.accepts.events:
            reason = Reason.NOT_ACCEPTABLE
        if reason is not None:
            await self._refuse(send, Refused(reason), head)
            return None
        told = await self._boundary.tell(method, head.arrival, lambda tools, policy: {})
        if told.status != 200:
            await send_answer(send, told)
            return None
        return live

    async def _answer_alone(self, frame: Frame, arrival: Arrival, response: McpResponse) -> None:
        """Answer a stateless message."""
        connection = self._boundary.connect(arrival, response.emit, is_official=True)
        work = connection.receive(frame, arrival, reaches_client=response.accepts.events)
        answer = await response.outcome(work)
        if answer is not None:
            await response.send(answer)

    async def _answer_newcomer(self, frame: Frame, arrival: Arrival, response: McpResponse) -> None:
        """Answer a message without a session, which may open one."""
        live = self._sessions.make(arrival)
        work = live.connection.receive(frame, arrival, response.emit, reaches_client=response.accepts.events)
        answer = await response.outcome(work)
        if answer is None:
            live.close()
        elif live.connection.session.revision is not None:
            await self._sessions.begin(live)
            await response.send(answer, [(_SESSION.encode(), live.id.encode())])
        elif answer.is_notification and answer.status == 202:
            # Without a session it has no meaning. A notification gets no answer, but here an error status.
            await response.send(answer._replace(status=400))
        else:
            await response.send(answer)

    async def _answer_session(
        self, live: LiveSession, frame: Frame, arrival: Arrival, response: McpResponse
    ) -> None:
        """Answer a message of a session."""
        arrival = arrival._replace(session=arrival.session or live.label)
        work = live.connection.receive(
            frame, arrival, response.emit, response.let_go, reaches_client=response.accepts.events
        )
        answer = await response.outcome(work)
        await self._sessions.keep(live)
        if answer is not None:
            await response.send(answer)

    def _why_unknown(self, head: _Head) -> Reason:
        is_known = self._sessions.is_known(head.arrival.key)
        return Reason.UNKNOWN_SESSION if is_known else Reason.UNAUTHORIZED

    async def _refuse(self, send: Send, refusal: Refused, head: _Head) -> None:
        await send_answer(send, await self._boundary.refuse(refusal, head.arrival, is_mcp=True))


def _head_of(scope: Scope) -> _Head:
    headers = headers_of(scope)
    said = {
        name.decode("latin-1"): value.decode("latin-1").strip()
        for name, value in headers.items()
        if name.startswith(b"mcp-")
    }
    is_stateless = said.get(VERSION) in STATELESS_REVISIONS
    return _Head(
        headers,
        arrival_of(scope, ROUTE, headers)._replace(headers=said),
        accepted(headers.get(b"accept")),
        None if is_stateless else said.get(_SESSION),
        is_stateless,
    )
