"""`Batches`: the batches of one connection, each answered in one array. 2025-03-26 alone has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final

from portbook.canonical import json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.mcp.exchange import ClientLink
from portbook.mcp.messages_from_client import Key, Work
from portbook.model import JSON, Answer, Arrival, JSONObject
from portbook.stages.state import CallState
from portbook.text.named_tuple import NamedTuple
from portbook.wire.jsonrpc import NO_ID, Id, not_an_object, read_id

__all__ = ["MAX_BATCH", "BatchMembers", "Batches", "SingleMessages"]

# The running members of a connection's batches, each of which the client can cancel.
#
# A door knows a batch only as a whole; its members run one after the other.

# Enough for a client that batches its messages; a larger array would bypass every limit.
MAX_BATCH: Final = 100


class BatchMembers:
    """Runs members of batches in tasks of their own, by the keys of their requests."""

    __slots__ = ("_running",)

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Answer]] = {}

    async def run(self, key: Hashable, answering: Coroutine[Any, Any, Answer]) -> Answer | None:
        """Return the answer to a member; None if the client has cancelled it."""
        running = self._running[key] = asyncio.get_running_loop().create_task(answering)
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError:  # of the batch as a whole
            running.cancel()
            await asyncio.wait((running,))  # until it is recorded
            raise
        finally:
            running.cancel()  # it has ended, unless the batch was closed
            del self._running[key]
        return None if running.cancelled() else running.result()

    def cancel(self, key: Hashable) -> bool:
        """Cancel the member with this key; return whether it is running."""
        running = self._running.get(key)
        if running is not None:
            # Soon: a task that is cancelled before its first step leaves no record.
            running.get_loop().call_soon(running.cancel)
        return running is not None


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
