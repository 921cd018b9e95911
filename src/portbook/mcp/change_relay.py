"""Tells all nodes of changed lists and resources, and passes on what they tell."""

from __future__ import annotations

from concurrent.futures import Future
from typing import cast

from portbook.canonical import json_bytes
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.node import CHANGE, Node
from portbook.model import JSON, Kind
from portbook.stores.mailbox import DraftMail, Mail
from portbook.stores.store_errors import StoreError
from portbook.tools.toolset import Changed
from portbook.wire.parsing import parse

__all__ = ["change_of", "relay_changes"]


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
