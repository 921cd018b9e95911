"""One connection's messages: which contract each is in, and in what order they are answered.

Which dialect a message is in, by what it is:

1. Its method starts with `mcp.`, or its params name a tool with `mcp.tool:`: the envelope dialect.
2. It is MCP by its method, by its `_meta`, or because the connection has been initialised: official.
3. Anything else is no contract's, and is refused as the boundary refuses it.

Messages of the envelope dialect are answered in turn, and so is what cannot be read. MCP's requests run at
once, except that everything after an `initialize` waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final, NamedTuple

from portbook.canonical import json_bytes
from portbook.dialects.envelope import Envelope
from portbook.dialects.official import Exchange, Official
from portbook.errors import Ending, Reason, Refused
from portbook.model import JSON, Answer, Arrival, Call, Context, JSONObject, trace_of
from portbook.pipeline import Pipeline
from portbook.protocol.session import Session
from portbook.wire.framing import OVERSIZE, Frame
from portbook.wire.jsonrpc import (
    NO_ID,
    OVERSIZE_RESULT,
    Id,
    nobody_waits,
    not_an_object,
    read_id,
    result_frame,
)
from portbook.wire.parsing import parse

__all__ = ["Conversation", "Key", "Order", "Work", "unread"]

# Enough for a client that gathers what it has to say; more in one array would be a way around every limit.
_MAX_BATCH: Final = 100

# What tells one request of a connection from another: 1 and "1" are different ids.
Key = tuple[type, str | int]


class Order(Enum):
    """When a message may be answered."""

    IN_TURN = "in turn"
    AT_ONCE = "at once"


class Work(NamedTuple):
    """What a frame asks of its door: a coroutine to run, or an earlier one to cancel."""

    answering: Coroutine[Any, Any, Answer]
    order: Order = Order.IN_TURN
    key: Key | None = None
    cancels: Key | None = None


class Conversation:
    """What one connection has agreed on, and which of its requests are under way."""

    def __init__(
        self,
        pipeline: Pipeline,
        envelope: Envelope,
        official: Official,
        answer_alone: Callable[[JSONObject, Id, Arrival], Coroutine[Any, Any, Answer]],
        arrival: Arrival,
        emit: Callable[[bytes], None],
    ) -> None:
        self._pipeline = pipeline
        self._envelope = envelope
        self._official = official
        self._answer_alone = answer_alone
        self._arrival = arrival
        self._emit = emit
        self._session = Session()
        self._under_way: set[Key] = set()

    def receive(self, frame: Frame) -> Work:
        """Return what is to be done about one frame. Raises nothing that a frame could cause."""
        if frame is OVERSIZE:
            return Work(self._refuse(b"", Refused(Reason.FRAME_TOO_LARGE)))
        try:
            message = parse(frame)
        except Refused as refusal:
            return Work(self._refuse(frame, refusal))
        if isinstance(message, dict):
            return self._receive_one(message, read_id(message, frame))
        revision = self._session.revision
        if isinstance(message, list) and message and revision is not None and revision.has_batches:
            return Work(self._answer_batch(message), Order.AT_ONCE)
        return Work(self._refuse(message, not_an_object(message)))

    def _receive_one(self, message: JSONObject, identifier: Id) -> Work:
        if self._envelope.recognises(message) or not self._official.recognises(message, self._session):
            return Work(self._answer_alone(message, identifier, self._arrival))
        exchange = self._official.read(message, identifier, self._arrival, self._session, self._emit)
        if nobody_waits(message):
            return Work(self._take_notice(message, exchange), cancels=_cancelled(message, exchange))
        if exchange.method == "initialize":
            return Work(self._answer(exchange, None))
        key = _key(message)
        if key in self._under_way:
            finding = Refused(Reason.ID_IN_USE)
            exchange = exchange._replace(call=exchange.call._replace(flaw=exchange.call.flaw or finding))
            return Work(self._answer(exchange, None))
        if key is not None:
            self._under_way.add(key)
        return Work(self._answer(exchange, key), Order.AT_ONCE, key)

    async def _answer(self, exchange: Exchange, key: Key | None) -> Answer:
        try:
            crossing = await self._pipeline.run(exchange.call)
        finally:
            if key is not None:
                self._under_way.discard(key)
        body = self._official.write(exchange, crossing.outcome)
        return Answer(body, 200, identity=crossing.identity)

    async def _take_notice(self, message: JSONObject, exchange: Exchange) -> Answer:
        """Heed a notification. Only one that is wrong leaves a record; none is ever answered."""
        if exchange.call.flaw is None and "method" in message:
            self._session.step(exchange.method)
        else:
            await self._pipeline.run(exchange.call)
        return Answer(None, 202, is_notification=True)

    async def _answer_batch(self, messages: list[JSON]) -> Answer:
        """Answer the messages of a batch in one array; where none of them waits for an answer, not at all."""
        if len(messages) > _MAX_BATCH:
            return await self._refuse(messages, Refused(Reason.NOT_JSONRPC))
        answers: list[bytes] = []
        for message in messages:
            if isinstance(message, dict) and message.get("method") != "initialize":
                work = self._receive_one(message, read_id(message, json_bytes(message)))
                answer = await work.answering
            else:
                answer = await self._refuse(message, not_an_object(message))
            if answer.body is not None and not answer.is_notification:
                answers.append(answer.body)
        return Answer(b"[" + b",".join(answers) + b"]" if answers else None, 200)

    async def _refuse(self, content: JSON | bytes, refusal: Refused) -> Answer:
        """Record and answer what is no message at all."""
        crossing = await self._pipeline.run(unread(content, self._arrival, refusal))
        ending = crossing.outcome
        assert isinstance(ending, Ending)
        if ending.reason is Reason.FRAME_TOO_LARGE:
            body = result_frame(NO_ID.token, OVERSIZE_RESULT)
        else:
            body = self._official.write_error(ending, NO_ID, self._session.revision)
        return Answer(body, ending.row.http, identity=crossing.identity)


def _key(message: JSONObject) -> Key | None:
    identifier = message.get("id")
    return (type(identifier), identifier) if isinstance(identifier, str | int) else None


def _cancelled(message: JSONObject, exchange: Exchange) -> Key | None:
    if exchange.call.flaw is not None or exchange.method != "notifications/cancelled":
        return None
    params = message.get("params")
    identifier = params.get("requestId") if isinstance(params, dict) else None
    return (type(identifier), identifier) if isinstance(identifier, str | int) else None


def unread(content: JSON | bytes, arrival: Arrival, flaw: Refused) -> Call:
    """Return what to record of a message that was not read: a call of nothing, with that flaw."""
    method = content.get("method") if isinstance(content, dict) else None
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name != "id"}
    return Call(
        arrival=arrival,
        method=method if isinstance(method, str) and len(method) <= 128 else None,
        tool=None,
        arguments={},
        input_bytes=0,
        context=Context(),
        trace=trace_of(arrival.traceparent),
        content=content,
        flaw=flaw,
    )
