"""How a connection begins: again for a server that a first question ended, its era kept, failures closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.upstreams.connection_and_server_questions import Events, UpstreamConnection
from portbook.upstreams.handshake import Introduction
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.message_checks_and_meta import AnswerChecks
from portbook.upstreams.transport import NotSent
from support.fake_upstream import FakeLink, validator

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "serverInfo": {"name": "s", "version": "1"},
}


class Handshaking(FakeLink):
    """Answers `initialize`, and refuses the rest."""

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "initialize":
            self.say({"id": message["id"], "result": HELLO})
        elif "id" in message:
            self.say({"id": message["id"], "error": {"code": -32601, "message": "no"}})


class Fragile(Handshaking):
    """Ends where it is asked something before `initialize`."""

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] != "server/discover":
            super().answer(message)
        else:
            assert self.receiver is not None
            self.receiver.lost("its process ended")


def begin(*links: FakeLink) -> list[str]:
    """Begin a connection over each link in turn, and return the first methods that were asked."""

    async def main() -> None:
        left = list(links)

        async def offered(*_: Any) -> None: ...

        def close(connection: UpstreamConnection) -> asyncio.Task[None]:
            return asyncio.get_running_loop().create_task(connection.close())

        checks = AnswerChecks(validator(), is_enforced=True, warn=lambda _: None)
        declared = DeclaredUpstream("s", "stdio", timeout_ms=2000)
        introduction = Introduction(declared, lambda: left.pop(0), checks, close)
        ignored = Events(lambda *_: None, lambda *_: None, lambda _: None)
        while left:
            connection = await introduction.connect(ignored, offered)
            assert connection.revision.name == "2025-06-18"

    asyncio.run(main())
    return [str(link.sent[0]["method"]) for link in links]


def test_the_era_of_a_server_is_asked_for_once() -> None:
    assert begin(Handshaking(), Handshaking()) == ["server/discover", "initialize"]


def test_a_server_that_the_first_question_ended_is_started_again_without_it() -> None:
    links = Fragile(), Fragile()
    assert begin(*links) == ["server/discover", "initialize"]
    assert not links[0].is_open


def test_a_server_that_ignores_the_first_question_has_time_left_for_the_second() -> None:
    class Deaf(Handshaking):
        def answer(self, message: dict[str, Any]) -> None:
            if message["method"] == "initialize":
                super().answer(message)

    assert begin(Deaf()) == ["server/discover"]


def test_a_server_that_cannot_be_spoken_with_is_closed_and_says_why() -> None:
    class Newer(Handshaking):
        def answer(self, message: dict[str, Any]) -> None:
            if message["method"] == "initialize":
                result = {**HELLO, "protocolVersion": "2040-01-01"}
                self.say({"id": message["id"], "result": result})
            else:
                super().answer(message)

    links = Newer(), Newer()
    with pytest.raises(NotSent, match="a revision that Portbook does not speak"):
        begin(*links)
    assert not any(link.is_open for link in links if link.sent)
