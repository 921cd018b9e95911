"""Messages of a client that are no plain call: notifications, heeded or recorded, and unreadable ones.

`Work` is what a door has to do for a message that may wait.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from portbook.dialects.asset_messages import refusal_frame
from portbook.dialects.exchange_contract import Exchange
from portbook.errors import Ending, Finding, Reason, Refused
from portbook.mcp.exchange import McpExchange, write_error
from portbook.model import JSON, Answer, Arrival, Call, CallerContext, JSONObject
from portbook.pipeline import Pipeline
from portbook.protocol.negotiation import Session
from portbook.protocol.revisions_and_methods import Revision
from portbook.text.named_tuple import NamedTuple
from portbook.wire.jsonrpc import Id
from portbook.wire.trace_context import trace_of

__all__ = ["Cancel", "Key", "Order", "Work", "answer_unread", "key_of", "take_notification", "unread"]

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


# Messages that cannot be read as a call: what is recorded of them, and how they are answered.


async def answer_unread(
    pipeline: Pipeline, call: Call, identifier: Id, revision: Revision | None, *, is_mcp: bool
) -> Answer:
    """Record and answer an unreadable message, in the words of MCP or of the other dialects."""
    completed = await pipeline.run(Exchange(call))
    ending = completed.outcome
    assert isinstance(ending, Ending)
    body = write_error(ending, identifier, revision) if is_mcp else refusal_frame(ending, identifier)
    return Answer(body, ending.row.http, identity=completed.identity)


def unread(content: JSON | bytes, arrival: Arrival, flaw: Refused) -> Call:
    """Return what to record of an unreadable message: a call without a tool, with that flaw."""
    method = content.get("method") if isinstance(content, dict) else None
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name != "id"}
    return Call(
        arrival=arrival,
        method=method if isinstance(method, str) and len(method) <= 128 else None,
        tool=None,
        arguments={},
        input_bytes=0,
        context=CallerContext(),
        trace=trace_of(arrival.traceparent),
        content=content,
        flaw=flaw,
    )


# What a door has to do for a frame that may wait, and how it names a running request.


# Identifies a request of a connection: 1 and "1" are different ids, 1 and 1.0 are not.
Key = str | int | float

# Cancels a running request, and says whether there was one. A door does it, which knows its tasks.
Cancel = Callable[[Key], bool]


class Order(Enum):
    """When a message may be answered."""

    IN_TURN = "in turn"
    AT_ONCE = "at once"


class Work(NamedTuple):
    """What a door has to do for a frame that may wait: run a coroutine, in turn or beside the next ones.

    It steps the coroutine at once, up to its first wait.
    """

    answering: Coroutine[Any, Any, Answer]
    order: Order = Order.IN_TURN
    key: Key | None = None
    only_waits: bool = False
    """Whether it waits for what runs without it: once its client has left, it serves nobody."""


def key_of(identifier: JSON) -> Key | None:
    """Return the key of a request with this id; None where it is none that a request can have."""
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float):
        return None
    return identifier
