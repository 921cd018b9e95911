"""What nodes hand to each other: answers and cancellations of clients, and changes of lists and resources.

`SessionRelay` hands what one session's client says to the node that runs the call it is about.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, cast

from portbook.canonical import json_bytes
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.node_and_its_mail import CHANGE, NOTICE, Node
from portbook.mcp.running_request import Key
from portbook.model import JSON, JSONObject, Kind
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.mailbox import DraftMail, Mail
from portbook.tools.toolset import Changed
from portbook.wire.jsonrpc import MAX_ID_BYTES
from portbook.wire.parsing import parse

__all__ = ["ANSWER", "CANCEL", "SessionRelay", "change_of", "relay_changes"]

# The client answers a question; the client cancels a request.
ANSWER: Final = "answer"
CANCEL: Final = "cancel"

# The id of a question: the node that asks, and what only that node knows.
_QUESTION: Final = re.compile(r"([0-9a-f]{16})\.[0-9a-f]{12}-[0-9]{1,9}", re.ASCII)

# What a client can say to other nodes at once, and each second: more than it can have asked for, or be asked.
_BURST: Final = 64.0
_EACH_SECOND: Final = 4.0


class SessionRelay:
    """The nodes, as the connection of one session sees them."""

    def __init__(self, node: Node, session: str, tick: Callable[[], float] = time.monotonic) -> None:
        """Speak for the session with this digest; `tick` returns seconds."""
        self._node = node
        self.session = session
        self._tick = tick
        self._left, self._counted = _BURST, tick()

    def node(self) -> str:
        """Return the name of this node, with which the ids of its questions begin."""
        return self._node.name

    def asker_of(self, message: JSONObject) -> str | None:
        """Return the node whose question a response answers; None for this one, and for what answers none."""
        identifier = message.get("id")
        found = _QUESTION.fullmatch(identifier) if isinstance(identifier, str) else None
        return None if found is None or found[1] == self._node.name else found[1]

    async def answer(self, node: str, message: JSONObject) -> bool:
        """Hand an answer to the node that asks; return False where that is gone, or this says too much."""
        if not self._may_tell():
            return False
        try:
            if not await self._node.lives(node):
                return False
        except StoreError:
            return False
        body = json_bytes(message).decode()
        return await self._node.tell(DraftMail(ANSWER, body, self.session, node))

    def cancel(self, key: Key) -> bool:
        """Cancel a request that a different node may run; return whether they were told."""
        if isinstance(key, str) and len(key) > MAX_ID_BYTES:
            return False  # no request has such an id
        if not self._may_tell():
            return False
        try:
            self._node.post(DraftMail(CANCEL, json_bytes(key).decode(), self.session))
        except StoreError:
            return False
        return True

    def _may_tell(self) -> bool:
        """Count a message of the client to other nodes; return False where it sends too many."""
        now = self._tick()
        self._left = min(_BURST, self._left + (now - self._counted) * _EACH_SECOND)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def emit(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Send a message that belongs to no request, to whichever node the client listens at."""
        if is_wanted():
            with contextlib.suppress(StoreError):  # as where nobody listens
                self._node.post(DraftMail(NOTICE, message.decode(), self.session))
        return True


# Changed lists and resources: all nodes are told of them, and pass on what they are told.


def relay_changes(node: Node, changes: ChangeFeed) -> None:
    """Publish each change of `changes` on all nodes: on this one, too, it comes back as a message."""

    def relay(changed: Changed) -> bool:
        def deliver_alone(posted: Future[int]) -> None:
            if posted.exception() is not None:  # the clients of this node at least
                changes.deliver(changed)

        try:
            posted = node.post(DraftMail(CHANGE, json_bytes([changed.kind, changed.uri]).decode()))
        except StoreError:
            return False
        posted.add_done_callback(deliver_alone)
        return True

    async def deliver(mail: Mail) -> None:
        changes.deliver(change_of(mail))

    changes.relay = relay
    node.on(CHANGE, deliver)


def change_of(mail: Mail) -> Changed:
    """Return the change that all nodes were told of."""
    kind, uri = cast("list[JSON]", parse(mail.body.encode()))
    return Changed(cast("Kind", kind), cast("str | None", uri))
