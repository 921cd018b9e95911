"""Messages that cannot be read as a call: what is recorded of them, and how they are answered."""

from __future__ import annotations

from portbook.dialects.asset_messages import refusal_frame
from portbook.dialects.exchange_contract import Exchange
from portbook.errors import Ending, Refused
from portbook.mcp.exchange import write_error
from portbook.model import JSON, Answer, Arrival, Call, CallerContext
from portbook.pipeline import Pipeline
from portbook.protocol.revisions_and_methods import Revision
from portbook.wire.jsonrpc import Id
from portbook.wire.trace_context import trace_of

__all__ = ["answer_unread", "unread"]


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
