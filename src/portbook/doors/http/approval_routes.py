"""`GET /approvals` and `POST /approvals/ID`: an operator lists tickets, approves and denies them.

A browser is sent to the console, which asks for the operator key and sends the requests that a program sends.
`GET /operator/waiting` has the calls that wait, with what a person needs to decide.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, cast
from urllib.parse import parse_qs, quote

from portbook.access.approval_state_and_binding import DECISIONS, State, Ticket, Undecidable, as_json
from portbook.app.running_app import App
from portbook.boundary import Begun, Boundary
from portbook.clock import until
from portbook.doors.http.operator.operator_route import asked, question
from portbook.doors.http.request import InboundRequest, arrival_of, wants_page
from portbook.doors.http.response import Reply, reply_to
from portbook.doors.http.rest_and_rpc_routes import message_route
from portbook.doors.http.router import Route, Serve
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, Arrival, JSONObject
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame
from portbook.wire.parsing import parse

__all__ = ["APPROVALS", "WAITING", "decide_approval", "list_approvals", "list_waiting", "show_approval"]

APPROVALS: Final = "/approvals"
_OPERATOR: Final = "operator (HTTP)"
_MAX_REASON: Final = 1000

# The same address sends browsers to the console and JSON to programs.
_VARY: Final = b"vary: Accept\r\n"


class Desk(Protocol):
    """The store of tickets."""

    def tickets(self, state: State | None = None, limit: int = 100) -> list[Ticket]:
        """Return the newest tickets."""
        ...

    def ticket(self, approval_id: str) -> Ticket | None:
        """Return one ticket."""
        ...

    async def decide(self, approval_id: str, decision: str, *, by: str, reason: str | None = None) -> Ticket:
        """Approve or deny."""
        ...


def list_approvals(boundary: Boundary, desk: Desk) -> Serve:
    """Return what lists tickets, only those of one `state` if the query names it.

    A browser is sent to the view of the console that lists them.
    """

    async def serve(request: InboundRequest) -> Reply:
        if wants_page(request.head.fields.get(b"accept")):
            return _to_console("./#/waiting")
        named = parse_qs(request.head.query.decode("latin-1")).get("state", [None])[0]

        async def act() -> JSON:
            if named is not None and named not in tuple(State):
                raise _bad("/state", f"must be one of {', '.join(State)}")
            found = await asyncio.to_thread(desk.tickets, State(named) if named else None)
            return {"approvals": [as_json(each) for each in found]}

        arrival = arrival_of(request.head, APPROVALS)
        return reply_to(await boundary.operate("approvals.list", arrival, act), _VARY)

    return serve


def show_approval(boundary: Boundary, desk: Desk) -> Serve:
    """Return what shows one ticket; a browser is sent to it in the console."""

    async def serve(request: InboundRequest) -> Reply:
        approval_id = request.segment
        if wants_page(request.head.fields.get(b"accept")):
            return _to_console(f"../#/waiting/{quote(approval_id, safe='')}")

        async def act() -> JSON:
            ticket = await asyncio.to_thread(desk.ticket, approval_id)
            if ticket is None:
                raise Refused(Reason.APPROVAL_UNKNOWN)
            return as_json(ticket)

        arrival = arrival_of(request.head, APPROVALS)
        return reply_to(await boundary.operate("approvals.show", arrival, act, approval_id), _VARY)

    return serve


def decide_approval(boundary: Boundary, desk: Desk) -> Route:
    """Return the route that approves or denies."""

    def begin(frame: Frame, arrival: Arrival, approval_id: str) -> Begun:
        flaw, decision, reason = _read(frame)

        async def act() -> JSON:
            if flaw is not None:
                raise flaw
            try:
                why = None if reason is None else boundary.without_secrets(reason)
                ticket = await desk.decide(approval_id, decision, by=_OPERATOR, reason=why)
            except Undecidable as error:
                if error.state is None:
                    raise Refused(Reason.APPROVAL_UNKNOWN) from None
                raise Refused(
                    Reason.APPROVAL_SETTLED, details={"state": error.state.value, "why": str(error)}
                ) from None
            return as_json(ticket)

        return boundary.operate("approvals.decide", arrival, act, approval_id, decision or None)

    return message_route(APPROVALS, begin, boundary.refuse_execution, boundary.recorder)


def _to_console(place: str) -> Reply:
    """Return the redirection to a view; relative, so that it works below a path of an application too."""
    return Reply(303, b"location: %b\r\ncache-control: no-store\r\n" % place.encode() + _VARY)


def _read(frame: Frame) -> tuple[Refused | None, str, str | None]:
    """Return the refusal of a wrong body, the decision and its reason."""
    try:
        decision, reason = _decision(frame)
    except Refused as refused:
        return refused, "", None
    return None, decision, reason


def _decision(frame: Frame) -> tuple[str, str | None]:
    if frame is OVERSIZE:
        raise Refused(Reason.FRAME_TOO_LARGE)
    body = parse(frame)
    given = cast("JSONObject", body) if isinstance(body, dict) else {}
    decision, reason = given.get("decision"), given.get("reason")
    if not isinstance(decision, str) or decision not in DECISIONS:
        raise _bad("/decision", f"must be one of {', '.join(DECISIONS)}")
    if reason is not None and not (isinstance(reason, str) and len(reason) <= _MAX_REASON):
        raise _bad("/reason", f"must be a text of at most {_MAX_REASON} characters")
    for name in given:
        if name not in ("decision", "reason"):
            raise _bad("", "has decision and reason, and nothing else")
    return decision, reason


def _bad(pointer: str, message: str) -> Refused:
    return Refused(Reason.BAD_PARAMS, (Finding(pointer, message, "approval", ""),))


# `GET /operator/waiting`: the calls that wait for a decision, with what a person needs to decide.

WAITING: Final = "/operator/waiting"

# No person reads more at once.
_MOST: Final = 100


def list_waiting(served: App) -> Serve:
    """Return what lists the calls that wait, the oldest first; only that of one approval if `id` names it."""

    async def answer(request: InboundRequest) -> JSON:
        return await asyncio.to_thread(_waiting, served, asked(request).get("id"))

    return question(served.boundary, WAITING, "approvals.wait", answer)


def _waiting(served: App, approval_id: str | None) -> JSON:
    found = _pending(served, approval_id)
    shown = found[:_MOST]
    before = served.approvals.last_approved({(each.tool, each.caller) for each in shown})
    now = served.approvals.now()
    waiting: list[JSON] = [_shown(served, each, before.get((each.tool, each.caller)), now) for each in shown]
    return {"waiting": waiting, "more": len(found) - len(shown)}


def _pending(served: App, approval_id: str | None) -> list[Ticket]:
    if approval_id is None:
        return served.approvals.tickets(State.PENDING, None)[::-1]
    named = served.approvals.ticket(approval_id)
    return [named] if named is not None and named.state is State.PENDING else []


def _shown(served: App, ticket: Ticket, before: Ticket | None, now: str) -> JSONObject:
    tool = served.catalog.by_any_name.get(ticket.tool)
    is_current = (
        tool is not None
        and tool.digest == ticket.tool_digest
        and served.rules.policy.digest == ticket.policy_digest
    )
    return {
        **as_json(ticket),
        "description": None if tool is None else tool.spec.description,
        "effect": None if tool is None else tool.spec.effect.value,
        "is_current": is_current,
        "age_s": round(until(ticket.asked_at, now)),
        "expires_in_s": round(until(now, ticket.expires_at)),
        "last_approved": None if before is None else _approved(before),
        "changes": [] if before is None else _changes(before.shown, ticket.shown),
    }


def _approved(ticket: Ticket) -> JSONObject:
    return {
        "approval_id": ticket.id,
        "decided_at": ticket.decided_at,
        "decided_by": ticket.decided_by,
        "reason": ticket.reason,
        "arguments": ticket.shown,
    }


def _changes(before: JSON, after: JSON) -> list[JSON]:
    """Return how redacted arguments differ from those of an earlier call."""
    from portbook.assets.json_patch import changed_places  # late: few calls wait

    return [change._asdict() for change in changed_places(before, after)]
