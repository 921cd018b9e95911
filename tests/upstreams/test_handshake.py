"""Which revision a server speaks: by what it answers, and remembered only if it said so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.upstreams.handshake import Era, Unspeakable, shake_hands
from portbook.upstreams.transport import SaysNothing
from support.fake_upstream import FakeLink, connected

HELLO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
FOUND = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


class Server(FakeLink):
    """Answers `server/discover` and `initialize`."""

    def __init__(self, discovered: Any, revision: str = "2025-06-18") -> None:
        super().__init__()
        self._discovered = discovered
        self._revision = revision

    def answer(self, message: dict[str, Any]) -> None:
        number, method = message.get("id"), message["method"]
        if method == "server/discover" and isinstance(self._discovered, Exception):
            assert self.receiver is not None
            assert isinstance(number, int)
            self.receiver.failed(number, self._discovered)
        elif method == "server/discover":
            self.say({"id": number, **self._discovered})
        elif method == "initialize":
            self.say({"id": number, "result": {"protocolVersion": self._revision, **HELLO}})


def meet(server: Server, era: Era) -> tuple[str, list[str]]:
    async def main() -> tuple[str, list[str]]:
        connection = await connected(server)
        await shake_hands(connection, era, frozenset({"roots"}), 1.0)
        assert connection.capabilities == {"tools": {}}
        return connection.revision.name, [message["method"] for message in server.sent]

    return asyncio.run(main())


def test_a_server_that_lists_the_newest_revision_is_spoken_to_without_a_handshake() -> None:
    era = Era()
    assert meet(Server({"result": FOUND}), era) == ("2026-07-28", ["server/discover"])
    assert era.is_stateless is True


@pytest.mark.parametrize(
    ("discovered", "remembered"),
    [
        ({"error": {"code": -32601, "message": "no"}}, False),
        ({"error": {"code": -32602, "message": "no"}}, False),
        ({"result": {**FOUND, "supportedVersions": ["2099-01-01"]}}, False),
        ({"result": {"nothing": True}}, False),
        (SaysNothing("it answered with the status 401"), None),
    ],
)
def test_every_other_answer_means_a_handshake(discovered: Any, remembered: bool | None) -> None:
    era = Era()
    revision, sent = meet(Server(discovered), era)
    assert revision == "2025-06-18"
    assert sent == ["server/discover", "initialize", "notifications/initialized"]
    assert era.is_stateless is remembered


def test_a_server_that_is_known_is_not_asked_again() -> None:
    assert meet(Server({}), Era(is_stateless=False))[1] == ["initialize", "notifications/initialized"]


def test_a_server_that_refuses_with_a_code_of_the_newest_revision_is_not_shaken_hands_with() -> None:
    era = Era()
    with pytest.raises(Unspeakable, match="-32022"):
        meet(Server({"error": {"code": -32022, "message": "no"}}), era)
    assert era.is_stateless is True


def test_a_revision_that_we_do_not_speak_is_refused() -> None:
    with pytest.raises(Unspeakable, match="does not speak"):
        meet(Server({"error": {"code": -32601, "message": "no"}}, "1999-01-01"), Era())
