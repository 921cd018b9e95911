"""One connection's messages: which contract each is in, and in what order they are answered.

Which dialect a message is in, by what it is:

1. Its method starts with `mcp.`, or its params name a tool with `mcp.tool:`: the envelope dialect.
2. Its method is the name of an asset tool: the bare dialect.
3. It is MCP by its method, by its `_meta`, or because the connection has been initialised: official.
4. Anything else is the bare dialect's too, where it names no tool that there is.

Messages of the envelope and bare dialects are answered in turn, and so is what cannot be read. MCP's requests
run at once, except that everything after an `initialize` waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final, NamedTuple

from portbook.canonical import json_bytes
from portbook.dialects.bare import Bare
from portbook.dialects.envelope import Envelope
from portbook.dialects.official import Exchange, Official
from portbook.errors import Ending, Finding, Reason, Refused
from portbook.faults import place_of
from portbook.model import JSON, Answer, Arrival, Call, Context, Done, JSONObject, trace_of
from portbook.pipeline import Pipeline
from portbook.protocol.session import Session
from portbook.wire.framing import OVERSIZE, Frame
from portbook.wire.jsonrpc import (
    NO_ID,
    Id,
    nobody_waits,
    not_an_object,
    read_id,
)
from portbook.wire.parsing import parse

__all__ = ["Conversation", "Emit", "Key", "Order", "Work", "unread"]

# Enough for a client that gathers what it has to say; more in one array would be a way around every limit.
_MAX_BATCH: Final = 100

# Requests of one connection under way; whoever has more is told that we are busy.
_MAX_UNDER_WAY: Final = 1024

# Sends a message of our own, if by then it is still wanted.
Emit = Callable[[bytes, Callable[[], bool]], None]

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
        bare: Bare,
        answer_alone: Callable[[JSONObject, Id, Arrival], Coroutine[Any, Any, Answer]],
        arrival: Arrival,
        emit: Emit,
    ) -> None:
        self._pipeline = pipeline
        self._envelope = envelope
        self._official = official
        self._bare = bare
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
        if isinstance(message, list) and revision is not None and revision.has_batches:
            return Work(self._answer_batch(message), Order.AT_ONCE)
        return Work(self._refuse(message, not_an_object(message)))

    def _receive_one(self, message: JSONObject, identifier: Id) -> Work:
        is_alone = self._envelope.recognises(message) or self._bare.recognises(message)
        if is_alone or not self._official.recognises(message, self._session):
            return Work(self._answer_alone(message, identifier, self._arrival))
        progress = _Progress(self._emit)
        try:
            exchange = self._official.read(message, identifier, self._arrival, self._session, progress.emit)
        except Exception as error:  # noqa: BLE001 - what nobody foresaw is recorded and answered, here too
            return Work(self._refuse(message, Refused(Reason.INTERNAL, note=place_of(error)), identifier))
        if nobody_waits(message):
            return Work(self._take_notice(message, exchange), cancels=_cancelled(message, exchange))
        key = _key(message.get("id"))
        flaw = exchange.call.flaw or self._refuse_another(exchange, key)
        if flaw is not None or exchange.method == "initialize":
            exchange = exchange._replace(call=exchange.call._replace(flaw=flaw))
            return Work(self._answer(exchange, None, progress))
        if key is not None:
            self._under_way.add(key)
        return Work(self._answer(exchange, key, progress), Order.AT_ONCE, key)

    def _refuse_another(self, exchange: Exchange, key: Key | None) -> Refused | None:
        """Return why a request may not join those under way."""
        if key in self._under_way:
            return Refused(Reason.ID_IN_USE)
        # Refused, not held back: a door that stops reading would not hear a cancellation either.
        is_full = len(self._under_way) >= _MAX_UNDER_WAY and exchange.method == "tools/call"
        return Refused(Reason.BUSY) if is_full else None

    async def _answer(self, exchange: Exchange, key: Key | None, progress: _Progress) -> Answer:
        try:
            crossing = await self._pipeline.run(exchange.call)
        finally:
            progress.is_over = True
            if key is not None:
                self._under_way.discard(key)
        if exchange.method == "initialize" and isinstance(crossing.outcome, Done):
            self._session.agree(exchange.revision)  # only now: what is not recorded was not agreed on
        body = self._official.write(exchange, crossing.outcome)
        return Answer(body, 200, identity=crossing.identity)

    async def _take_notice(self, message: JSONObject, exchange: Exchange) -> Answer:
        """Heed a notification. Only one that is wrong leaves a record; none is ever answered."""
        if exchange.call.flaw is not None or "method" not in message:
            await self._pipeline.run(exchange.call)
        return Answer(None, 202, is_notification=True)

    async def _answer_batch(self, messages: list[JSON]) -> Answer:
        """Answer the messages of a batch in one array; where none of them waits for an answer, not at all."""
        if not 0 < len(messages) <= _MAX_BATCH:
            finding = Finding("", f"a batch holds 1 to {_MAX_BATCH} messages", "maxItems", "")
            return await self._refuse(messages, Refused(Reason.NOT_JSONRPC, (finding,)))
        answers: list[bytes] = []
        for message in messages:
            if not isinstance(message, dict):
                answer = await self._refuse(message, not_an_object(message))
            else:
                answer = await self._answer_member(message, read_id(message, json_bytes(message)))
            if answer.body is not None and not answer.is_notification:
                answers.append(answer.body)
        return Answer(b"[" + b",".join(answers) + b"]" if answers else None, 200)

    async def _answer_member(self, message: JSONObject, identifier: Id) -> Answer:
        if message.get("method") == "initialize":
            finding = Finding("/method", "initialize cannot be part of a batch", "batch", "")
            return await self._refuse(message, Refused(Reason.NOT_JSONRPC, (finding,)), identifier)
        return await self._receive_one(message, identifier).answering

    async def _refuse(self, content: JSON | bytes, refusal: Refused, identifier: Id = NO_ID) -> Answer:
        """Record and answer what is no message that can be read on its own."""
        crossing = await self._pipeline.run(unread(content, self._arrival, refusal))
        ending = crossing.outcome
        assert isinstance(ending, Ending)
        body = self._official.write_error(ending, identifier, self._session.revision)
        return Answer(body, ending.row.http, identity=crossing.identity)


class _Progress:
    """Progress that ends with its call: what a function that was left behind still tells goes nowhere."""

    __slots__ = ("_emit", "is_over")

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.is_over = False

    def emit(self, message: bytes) -> None:
        self._emit(message, self._is_wanted)

    def _is_wanted(self) -> bool:
        return not self.is_over


def _key(identifier: JSON) -> Key | None:
    if isinstance(identifier, float) and identifier.is_integer():
        identifier = int(identifier)
    return (type(identifier), identifier) if isinstance(identifier, str | int) else None


def _cancelled(message: JSONObject, exchange: Exchange) -> Key | None:
    if exchange.call.flaw is not None or exchange.method != "notifications/cancelled":
        return None
    params = message.get("params")
    return _key(params.get("requestId")) if isinstance(params, dict) else None


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
