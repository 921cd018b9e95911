"""`GET /operator/waiting`: the calls that wait for a decision, with what a person needs to decide."""

from __future__ import annotations

import asyncio
from typing import Final

from portbook.access.approval_state_and_binding import State, Ticket, as_json
from portbook.app.running_app import App
from portbook.clock import until
from portbook.doors.http.operator.operator_route import asked, question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Serve
from portbook.model import JSON, JSONObject

__all__ = ["WAITING", "list_waiting"]

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
