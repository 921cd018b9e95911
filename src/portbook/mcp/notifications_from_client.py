"""Notifications of a client: heeded, or recorded with the reason why they have no effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from portbook.errors import Finding, Reason, Refused
from portbook.mcp.exchange import McpExchange
from portbook.mcp.running_request import Cancel, key_of
from portbook.model import Answer, JSONObject
from portbook.pipeline import Pipeline
from portbook.protocol.negotiation import Session

__all__ = ["take_notification"]

_CANCELLED: Final = "notifications/cancelled"

# Notifications that are heeded on a connection with an agreed revision: nothing is left to do for them.
_HEEDED: Final = frozenset({"notifications/initialized", "notifications/roots/list_changed"})

# Flaws of notifications that are no mistake of the client: they are accepted, without effect.
_HARMLESS: Final = frozenset({Reason.UNKNOWN_METHOD, Reason.IGNORED})


async def take_notification(
    pipeline: Pipeline, exchange: McpExchange, message: JSONObject, session: Session, cancel: Cancel
) -> Answer:
    """Heed a notification, or record why it has no effect; none is ever answered.

    Over HTTP, a wrong one gets an error status; an unknown one, and one about nothing, does not.
    """
    flaw = exchange.call.flaw or _heed(message, exchange.method, session, cancel)
    if flaw is None:
        return Answer(None, 202, is_notification=True)
    exchange.call = replace(exchange.call, flaw=flaw)
    completed = await pipeline.run(exchange)
    is_wrong = flaw.reason not in _HARMLESS and "method" in message
    return Answer(None, 400 if is_wrong else 202, is_notification=True, identity=completed.identity)


def _heed(message: JSONObject, method: str, session: Session, cancel: Cancel) -> Refused | None:
    """Do what a valid notification asks for; return why it has no effect, if it has none."""
    if method in _HEEDED and session.revision is not None:
        return None
    pointer, told = "/method", "concerns nothing in progress"
    if method == _CANCELLED:
        params = message.get("params")
        key = key_of(params.get("requestId")) if isinstance(params, dict) else None
        if key is not None and cancel(key):
            return None
        pointer, told = "/params/requestId", "names no running request"
    return Refused(Reason.IGNORED, (Finding(pointer, told, "ignored", ""),))
