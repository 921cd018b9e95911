"""`/mcp`: the Model Context Protocol over HTTP, of both eras, at one address.

A request that names a revision without a handshake is stateless. All remaining requests belong to a session,
which `initialize` opens and the header `Mcp-Session-Id` names.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from portbook.boundary import Boundary
from portbook.doors.http.mcp.json_or_stream_reply import McpResponse, Running, event_reply
from portbook.doors.http.mcp.kept_events_and_stream_limits import MAX_LISTENING
from portbook.doors.http.mcp.sessions import Sessions
from portbook.doors.http.mcp.sessions_in_memory import LiveSession, label_of
from portbook.doors.http.request import (
    Accepts,
    InboundRequest,
    RequestHead,
    accepted,
    arrival_of,
    one_for_equal,
)
from portbook.doors.http.response import HeldReply, Replied, Reply, Write, problem, reply_to
from portbook.doors.http.router import Route, finish_reply, refuse_method
from portbook.errors import Reason, Refused
from portbook.mcp.messages_from_client import Work
from portbook.model import Answer, Arrival
from portbook.protocol.mirrored_headers import SESSION, VERSION
from portbook.protocol.revisions_and_methods import HANDSHAKE_REVISIONS, STATELESS_REVISIONS
from portbook.stages.state import CallState
from portbook.text.named_tuple import new_tuple
from portbook.wire.lines_and_size_limit import Frame

__all__ = ["ROUTE", "mcp"]

ROUTE: Final = "/mcp"


class _Head(NamedTuple):
    """What the headers of a request say, parsed."""

    arrival: Arrival
    arrival_in_session: Arrival
    """The same, with the name of its session for the record."""
    accepts: Accepts
    session: str | None
    """The id of its session; None for a stateless request, or one without a session yet."""
    is_stateless: bool
    last_event: str | None


def mcp(boundary: Boundary, sessions: Sessions) -> dict[str, Route]:
    """Return the routes, by HTTP method."""
    door = _McpDoor(boundary, sessions)
    return {
        "POST": Route(door.post, door.refuse, takes_message=True),
        "GET": Route(door.get, door.refuse),
        "DELETE": Route(door.delete, door.refuse),
    }


class _McpDoor:
    def __init__(self, boundary: Boundary, sessions: Sessions) -> None:
        self._boundary = boundary
        self._recorder = boundary.recorder
        self._sessions = sessions
        self._running: Running = {}
        self._stateless = boundary.connect(
            Arrival("http", ROUTE), _emit_to_nobody, is_official=True, is_stateless=True
        )
        self._listening: Counter[str] = Counter()

    def post(self, request: InboundRequest) -> Replied:
        """Answer one message, or a batch."""
        head = request.head.derive(_head_of)
        if not (head.accepts.json or head.accepts.events):
            return self._refuse(Refused(Reason.NOT_ACCEPTABLE), head)
        if head.session is None and not head.is_stateless:
            return self._answer_newcomer(request.body, head)
        live, arrival = None, head.arrival
        if head.session is not None:
            live, arrival = self._sessions.find(head.session, arrival), head.arrival_in_session
            if live is None:
                return self._post_fetched(request, head, head.session)
        response = McpResponse(head.accepts, self._running, live, request.memory)
        connection = self._stateless if live is None else live.connection
        self._recorder.hold()
        try:
            work = connection.receive(
                request.body,
                arrival,
                response.emit,
                None if live is None else response.let_go,
                reaches_client=head.accepts.events,
            )
        finally:
            self._recorder.release()
        if isinstance(work, CallState) and (live is None or live.saved == connection.session.changes):
            return new_tuple(HeldReply, (self._recorder, work, response.worded))
        return self._answer_later(work, response, live)

    async def _post_fetched(self, request: InboundRequest, head: _Head, session: str) -> Reply:
        """Answer a message of a session that this process does not know, but may find in the store."""
        if await self._sessions.fetch(session, head.arrival) is None:
            return await self._refuse(Refused(self._why_unknown(head)), head)
        return await finish_reply(self.post(request))

    async def get(self, request: InboundRequest) -> Reply:
        """Open the session's own stream of notifications, or resume a stream after Last-Event-ID."""
        head = request.head.derive(_head_of)
        live = await self._entered(request.head, head, "session.listen", needs_events=True)
        if isinstance(live, Reply):
            return live
        position = await self._sessions.position_after(live, head.last_event)
        if position.is_guest and position.stream.is_read:
            return problem(
                409, "CONFLICT", "This event has expired, and the stream has a reader. Omit Last-Event-ID."
            )
        if self._listening[live.bound] >= MAX_LISTENING and not position.stream.is_read:
            return await self._refuse(Refused(Reason.TOO_MANY_STREAMS), head)
        key = head.arrival.key
        reply = event_reply(position, may_read=lambda: self._sessions.may_listen(live, key))
        assert reply.stream is not None
        return reply._replace(stream=partial(self._counted, live.bound, reply.stream))

    async def _counted(self, bound: str, copy: Callable[[Write], Awaitable[None]], write: Write) -> None:
        """Send a stream that counts as one of its caller's."""
        self._listening[bound] += 1
        try:
            await copy(write)
        finally:
            self._listening -= Counter((bound,))

    async def delete(self, request: InboundRequest) -> Reply:
        """End a session."""
        live = await self._entered(request.head, request.head.derive(_head_of), "session.end")
        if isinstance(live, Reply):
            return live
        await self._sessions.forget(live)
        return reply_to(Answer(None, 204))

    async def refuse(self, head: RequestHead, refused: Refused) -> Reply:
        """Answer a request that is refused unread."""
        return await self._refuse(refused, head.derive(_head_of))

    async def _entered(
        self, request: RequestHead, head: _Head, method: str, *, needs_events: bool = False
    ) -> LiveSession | Reply:
        """Return the session of a GET or DELETE; where it has none, the reply with the reason."""
        if head.session is None:
            return await refuse_method(self.refuse, request, ["POST"], "Without a session")
        reason: Reason | None = None
        live = self._sessions.find(head.session, head.arrival)
        live = live or await self._sessions.fetch(head.session, head.arrival)
        if live is None:
            return await self._refuse(Refused(self._why_unknown(head)), head)
        if (head.arrival.headers or {}).get(VERSION, live.revision_name) not in HANDSHAKE_REVISIONS:
            reason = Reason.HEADER_MISMATCH
        elif needs_events and not head.accepts.events:
            reason = Reason.NOT_ACCEPTABLE
        if reason is not None:
            return await self._refuse(Refused(reason), head)
        told = await self._boundary.tell(method, head.arrival, lambda tools, policy: {})
        return live if told.status == 200 else reply_to(told)

    async def _answer_later(
        self, work: CallState | Work, response: McpResponse, live: LiveSession | None
    ) -> Reply:
        """Answer a message that has to wait, or whose session has to be stored first."""
        if isinstance(work, CallState):
            self._recorder.flush()  # it was held, and no record comes after its answer
        if live is None:
            return response.replied(await response.outcome(work))
        try:
            answer = await response.outcome(work)
        finally:
            await self._sessions.keep(live)
        return response.replied(answer, partial(self._sessions.keep, live))

    async def _answer_newcomer(self, frame: Frame, head: _Head) -> Reply:
        """Answer a message without a session, which may open one."""
        arrival, response = head.arrival, McpResponse(head.accepts, self._running)
        live = self._sessions.make(arrival)
        work = live.connection.receive(frame, arrival, response.emit, reaches_client=head.accepts.events)
        try:
            answer = await response.outcome(work)
        except asyncio.CancelledError:
            live.close()
            raise
        if answer is None:

            async def close() -> None:
                live.close()

            return response.streamed(close)
        if live.connection.session.revision is not None:
            await self._sessions.begin(live)
            return response.reply(answer, f"{SESSION}: {live.id}\r\n".encode())
        if answer.is_notification and answer.status == 202:
            # Without a session it has no meaning. A notification gets no answer, but here an error status.
            return response.reply(answer._replace(status=400))
        return response.reply(answer)

    def _why_unknown(self, head: _Head) -> Reason:
        is_known = self._sessions.is_known(head.arrival.key)
        return Reason.UNKNOWN_SESSION if is_known else Reason.UNAUTHORIZED

    async def _refuse(self, refused: Refused, head: _Head) -> Reply:
        return reply_to(await self._boundary.refuse(refused, head.arrival, is_mcp=True))


def _emit_to_nobody(
    message: bytes,
    is_wanted: Callable[[], bool],
    *,
    is_vital: bool = False,
    on_room: Callable[[], None] | None = None,
) -> bool:
    """Send what belongs to no request: without a session, nobody is there to get it."""
    return True


def _head_of(head: RequestHead) -> _Head:
    fields = head.fields
    said = {
        name.decode("latin-1"): value.decode("latin-1").strip()
        for name, value in fields.items()
        if name.startswith(b"mcp-")
    }
    is_stateless = said.get(VERSION) in STATELESS_REVISIONS
    session = None if is_stateless else said.get(SESSION)
    arrival = arrival_of(head, ROUTE, said)
    label = arrival.session if session is None else arrival.session or label_of(session)
    return _Head(
        arrival,
        arrival if label == arrival.session else one_for_equal(replace(arrival, session=label)),
        accepted(fields.get(b"accept")),
        session,
        is_stateless,
        fields.get(b"last-event-id", b"").decode("latin-1").strip() or None,
    )
