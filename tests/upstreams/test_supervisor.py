"""One server: started when needed, once for all who wait, and again when it has failed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.upstreams import supervisor
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.message_checks_and_meta import AnswerChecks
from portbook.upstreams.supervisor import Supervisor, Watcher
from portbook.upstreams.transport import NotSent
from support.fake_upstream import FakeLink, validator

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}
TOOLS = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}


class Behaving(FakeLink):
    def answer(self, message: dict[str, Any]) -> None:
        results = {"initialize": HELLO, "tools/list": TOOLS}
        if message["method"] in results:
            self.say({"id": message["id"], "result": results[message["method"]]})
        elif "id" in message:
            self.say({"id": message["id"], "error": {"code": -32601, "message": "no"}})


class Broken(FakeLink):
    last_words = "out of memory"

    async def open(self, receiver: Any) -> None:
        raise NotSent("it cannot be started")


class Scene:
    """A supervised server, and what became known of it."""

    def __init__(self, *links: FakeLink, **declared: Any) -> None:
        self.links = list(links)
        self.made: list[FakeLink] = []
        self.offers: list[Any] = []
        self.told: list[str] = []
        checks = AnswerChecks(validator(), is_enforced=True, warn=self.told.append)
        watcher = Watcher(self._offered, lambda _: None, lambda _: None, self.told.append)
        upstream = DeclaredUpstream("s", "stdio", timeout_ms=2000, **declared)
        self.server = Supervisor(upstream, self._link, checks, watcher)

    async def _offered(self, _process: object, offer: Offer, _announced: frozenset[str]) -> None:
        self.offers.append(offer)

    def _link(self) -> FakeLink:
        link = self.links.pop(0) if self.links else Behaving()
        self.made.append(link)
        return link


def test_all_who_wait_for_a_start_share_it() -> None:
    async def main() -> None:
        scene = Scene()
        first, second = await asyncio.gather(scene.server.connected(), scene.server.connected())
        assert first is second
        assert (len(scene.made), len(scene.offers), scene.server.state) == (1, 1, "ready")
        assert scene.server.revision == "2025-11-25"
        await scene.server.close()
        assert not scene.made[0].is_open

    asyncio.run(main())


def test_each_key_has_a_connection_of_its_own() -> None:
    async def main() -> None:
        scene = Scene()
        assert await scene.server.connected("a") is not await scene.server.connected("b")
        await scene.server.close()

    asyncio.run(main())


def test_after_a_failure_calls_are_refused_for_a_while_and_the_operator_knows_why() -> None:
    async def main() -> None:
        scene = Scene(Broken())
        for _ in range(2):
            with pytest.raises(NotSent) as caught:
                await scene.server.connected()
            assert "out of memory" not in str(caught.value)
        assert len(scene.made) == 1
        assert scene.server.state == "failed"
        assert scene.server.last_error == "it cannot be started; it said: out of memory"
        await scene.server.close()

    asyncio.run(main())


def test_a_server_that_was_never_there_is_tried_again_by_itself() -> None:
    async def main() -> None:
        scene = Scene(Broken())
        with pytest.raises(NotSent):
            await scene.server.connected()
        async with asyncio.timeout(10):
            while not scene.server.has_offered:
                await asyncio.sleep(0.02)
        assert (scene.server.state, scene.server.restarts, scene.server.last_error) == ("ready", 1, None)
        await scene.server.close()

    asyncio.run(main())


def test_a_server_that_ended_is_started_by_the_next_call() -> None:
    async def main() -> None:
        scene = Scene()
        first = await scene.server.connected()
        first.lost("its process ended")
        second = await scene.server.connected()
        assert second is not first
        assert scene.server.restarts == 1
        await scene.server.close()

    asyncio.run(main())


class Ending(FakeLink):
    """Ends with the first question."""

    def answer(self, message: dict[str, Any]) -> None:
        assert self.receiver is not None
        self.receiver.lost("its process ended")


def test_a_server_that_cannot_bear_the_question_is_not_asked_it_a_second_time() -> None:
    async def main() -> None:
        scene = Scene(Ending())
        await scene.server.connected()
        asked = [link.sent[0]["method"] for link in scene.made]
        assert asked == ["server/discover", "initialize"]
        await scene.server.close()

    asyncio.run(main())


def test_a_server_that_fails_whatever_it_is_asked_has_not_shown_its_era(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_WAIT_S", 0.0)

    async def main() -> None:
        scene = Scene(Ending(), Ending())
        scene.server.has_offered = True  # so that nothing but the next call starts it
        with pytest.raises(NotSent):
            await scene.server.connected()
        await scene.server.connected()
        asked = [link.sent[0]["method"] for link in scene.made]
        assert asked == ["server/discover", "initialize", "server/discover"]
        await scene.server.close()

    asyncio.run(main())


def test_several_changes_are_one_question() -> None:
    async def main() -> None:
        scene = Scene()
        await scene.server.connected()
        for _ in range(5):
            scene.made[0].say({"method": "notifications/tools/list_changed"})
        async with asyncio.timeout(10):
            while len(scene.offers) < 2:
                await asyncio.sleep(0.02)
        assert [each["method"] for each in scene.made[0].sent].count("tools/list") == 2
        await scene.server.close()

    asyncio.run(main())


class Slow(Behaving):
    """Says nothing until it is closed."""

    def answer(self, message: dict[str, Any]) -> None: ...


def test_a_call_that_waits_for_a_start_survives_a_restart() -> None:
    async def main() -> None:
        scene = Scene(Slow())
        waiting = asyncio.ensure_future(scene.server.connected())
        while not scene.made or not scene.made[0].sent:
            await asyncio.sleep(0)
        await scene.server.restart()
        assert await waiting is scene.server.ready()
        await scene.server.close()

    asyncio.run(main())


def test_a_start_that_ends_with_portbook_sent_nothing() -> None:
    async def main() -> None:
        scene = Scene(Slow())
        waiting = asyncio.ensure_future(scene.server.connected())
        while not scene.made or not scene.made[0].sent:
            await asyncio.sleep(0)
        await scene.server.close()
        with pytest.raises(NotSent):
            await waiting

    asyncio.run(main())
