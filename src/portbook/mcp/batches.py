"""`Batches`: the batches of one connection, each answered in one array. 2025-03-26 alone has them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from portbook.canonical import json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.mcp.batch_members import MAX_BATCH, BatchMembers
from portbook.mcp.exchange import ClientLink
from portbook.mcp.work import Key, Work
from portbook.model import JSON, Answer, Arrival, JSONObject
from portbook.stages.state import CallState
from portbook.text.named_tuple import NamedTuple
from portbook.wire.jsonrpc import not_an_object
from portbook.wire.parsing import NO_ID, Id, read_id

__all__ = ["Batches", "SingleMessages"]


class SingleMessages(NamedTuple):
    """How a connection answers a message that came alone."""

    receive: Callable[[JSONObject, Id, Arrival, ClientLink], CallState | Work]
    refuse: Callable[[JSON | bytes, Refused, Arrival, Id], Coroutine[Any, Any, Answer]]
    flush: Callable[[], None]
    """Writes the records of what has ended."""


class Batches:
    """Answers batches member by member, as messages that came alone."""

    __slots__ = ("_members", "_single")

    def __init__(self, single: SingleMessages) -> None:
        self._single = single
        self._members = BatchMembers()

    async def answer(self, messages: list[JSON], arrival: Arrival, link: ClientLink) -> Answer:
        """Answer the messages of a batch in one array; not at all if none of them expects an answer."""
        if not 0 < len(messages) <= MAX_BATCH:
            finding = Finding("", f"a batch must have 1 to {MAX_BATCH} messages", "maxItems", "")
            return await self._single.refuse(
                messages, Refused(Reason.NOT_JSONRPC, (finding,)), arrival, NO_ID
            )
        answers: list[bytes] = []
        for message in messages:
            if not isinstance(message, dict):
                answer = await self._single.refuse(message, not_an_object(message), arrival, NO_ID)
            else:
                identifier = read_id(message, json_bytes(message))
                answer = await self._answer_member(message, identifier, arrival, link)
            if answer is not None and answer.body is not None and not answer.is_notification:
                answers.append(answer.body)
        if not answers:
            return Answer(None, 202, is_notification=True)
        return Answer(b"[" + b",".join(answers) + b"]", 200)

    def cancel(self, key: Key) -> bool:
        """Cancel the member with this key; return whether it is running."""
        return self._members.cancel(key)

    async def _answer_member(
        self, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink
    ) -> Answer | None:
        """Return the answer to a member of a batch; None if the client has cancelled it."""
        if message.get("method") == "initialize":
            finding = Finding("/method", "initialize cannot be part of a batch; send it alone", "batch", "")
            flaw = Refused(Reason.NOT_JSONRPC, (finding,))
            return await self._single.refuse(message, flaw, arrival, identifier)
        # The stream is that of all members: none of them may close it.
        member = ClientLink(link.session, link.client_requests, link.emit)
        work = self._single.receive(message, identifier, arrival, member)
        if isinstance(work, CallState):
            self._single.flush()  # its answer is worded now, and leaves with those of the others
            return work.reply()
        if work.key is None:
            return await work.answering
        return await self._members.run(work.key, work.answering)
