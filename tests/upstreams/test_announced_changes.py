"""What we hear from a server while nobody calls it."""

from __future__ import annotations

import asyncio

from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.upstreams.announced_changes import Subscriptions
from support.fake_upstream import FakeLink, connected


def test_a_server_with_a_handshake_is_asked_for_resources_one_by_one() -> None:
    async def main() -> None:
        link, subscriptions = FakeLink(), Subscriptions()
        connection = await connected(link)
        connection.capabilities = {"resources": {"subscribe": True}}
        subscriptions.begin(connection)
        subscriptions.watch("a://1")
        subscriptions.watch("a://1")
        assert [each["params"] for each in link.sent] == [{"uri": "a://1"}]
        again = FakeLink()
        second = await connected(again)
        second.capabilities = connection.capabilities
        subscriptions.begin(second)
        assert again.sent == []  # one of them is enough
        subscriptions.leave(connection, second)
        assert [each["method"] for each in again.sent] == ["resources/subscribe"]
        subscriptions.unwatch("a://1")
        subscriptions.unwatch("a://1")
        assert [each["method"] for each in again.sent[1:]] == ["resources/unsubscribe"]

    asyncio.run(main())


def test_a_server_without_subscriptions_is_not_asked() -> None:
    async def main() -> None:
        link, subscriptions = FakeLink(), Subscriptions()
        subscriptions.begin(await connected(link))
        subscriptions.watch("a://1")
        subscriptions.unwatch("a://1")
        assert link.sent == []

    asyncio.run(main())


def test_a_server_without_a_handshake_has_one_stream_for_all() -> None:
    async def main() -> None:
        link, subscriptions = FakeLink(), Subscriptions()
        connection = await connected(link)
        connection.agree(REVISIONS["2026-07-28"])
        subscriptions.begin(connection)
        subscriptions.watch("a://1")
        subscriptions.unwatch("a://1")
        listens = [
            each["params"]["notifications"]
            for each in link.sent
            if each["method"] != "notifications/cancelled"
        ]
        assert "resourceSubscriptions" not in listens[0]
        assert listens[1]["resourceSubscriptions"] == ["a://1"]
        assert "resourceSubscriptions" not in listens[2]
        assert link.abandoned == [1, 2]
        assert not connection.is_busy

    asyncio.run(main())
