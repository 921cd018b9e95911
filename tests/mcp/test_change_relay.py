"""Changes are told to all nodes, and to this one at least where the store is away."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import cast

from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.node_mail_and_relay import Node, change_of, relay_changes
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.mailbox import DraftMail, Mail
from portbook.tools.toolset import Changed

TOOLS, THING = Changed("tool"), Changed("resource", "x://thing")


class Posts:
    """A node that stores, fails later, or cannot be reached."""

    def __init__(self, error: Exception | None = None, *, is_open: bool = True) -> None:
        self.posted: list[DraftMail] = []
        self._error = error
        self._is_open = is_open

    def post(self, draft: DraftMail) -> Future[int]:
        if not self._is_open:
            raise StoreError("away")
        self.posted.append(draft)
        future: Future[int] = Future()
        if self._error is None:
            future.set_result(1)
        else:
            future.set_exception(self._error)
        return future


def told_by(posts: Posts) -> list[Changed]:
    heard: list[Changed] = []
    feed = ChangeFeed()
    feed.subscribe(lambda change: heard.append(change.changed))
    relay_changes(cast("Node", SimpleNamespace(post=posts.post, on=lambda *_: None)), feed)
    for change in (TOOLS, THING):
        feed.publish(change)
    return heard


def test_a_change_is_told_to_all_and_comes_back_from_there() -> None:
    posts = Posts()
    assert told_by(posts) == []
    mails = [Mail(1, each.kind, each.body, each.session, each.node) for each in posts.posted]
    assert [change_of(mail) for mail in mails] == [TOOLS, THING]


def test_where_the_store_is_away_the_clients_of_this_node_are_told() -> None:
    assert told_by(Posts(StoreError("away"))) == [TOOLS, THING]
    assert told_by(Posts(is_open=False)) == [TOOLS, THING]
