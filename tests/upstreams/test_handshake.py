"""Which revision a server speaks: by what it answers, and remembered only if it said so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.upstreams import handshake
from portbook.upstreams.handshake import Era, Unspeakable, shake_hands
from portbook.upstreams.transport import ConnectionLost, SaysNothing
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


class SlowServer(Server):
    """Reads nothing before it has a second message, as a program that is still being fetched."""

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "initialize":
            super().answer(self.sent[0])
            super().answer(message)


class SlowModernServer(SlowServer):
    """Refuses a handshake once it has answered `server/discover`, as the official SDK does."""

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "initialize":
            Server.answer(self, self.sent[0])
            self.say({"id": message["id"], "error": {"code": -32022, "message": "no handshake"}})


class LaterServer(SlowModernServer):
    """Answers `server/discover` after it has refused `initialize`, or never."""

    def __init__(self, discovered: Any, seconds: float = 0.03) -> None:
        super().__init__(discovered)
        self._seconds = seconds

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "initialize":
            self.say({"id": message["id"], "error": {"code": -32022, "message": "no handshake"}})
            loop = asyncio.get_running_loop()
            loop.call_later(self._seconds, lambda: Server.answer(self, self.sent[0]))


class EndingServer(SlowServer):
    """Ends at a message that it does not know."""

    def __init__(self, *known: str) -> None:
        super().__init__({"result": FOUND})
        self._known = known

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "initialize":
            for each in self.sent:
                if each["method"] not in self._known:
                    assert self.receiver is not None
                    self.receiver.lost("its process ended")
                    return
                Server.answer(self, each)


class DeafServer(Server):
    """Ignores what it does not know."""

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "initialize":
            super().answer(message)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "_DISCOVER_S", 0.01)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_starts_slowly_is_not_mistaken_for_one_of_the_handshake_era() -> None:
    era = Era()
    with pytest.raises(Unspeakable, match="asked again without one"):
        meet(SlowServer({"result": FOUND}), era)
    assert era.is_stateless is True
    assert meet(Server({"result": FOUND}), era)[0] == "2026-07-28"


@pytest.mark.usefixtures("impatient")
def test_a_slow_server_that_refuses_a_handshake_goes_on_without_one() -> None:
    era = Era()
    revision, sent = meet(SlowModernServer({"result": FOUND}), era)
    assert (revision, sent) == ("2026-07-28", ["server/discover", "initialize"])
    assert era.is_stateless is True


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("knows_requests", [False, True], ids=["stdio", "http"])
def test_answers_of_a_slow_server_may_come_in_any_order(
    monkeypatch: pytest.MonkeyPatch, knows_requests: bool
) -> None:
    server, era = LaterServer({"result": FOUND}), Era()
    server.knows_requests = knows_requests
    monkeypatch.setattr(handshake, "_DISCOVER_S", 0.2)
    revision, sent = meet(server, era)
    assert (revision, sent) == ("2026-07-28", ["server/discover", "initialize"])
    assert era.is_stateless is True


@pytest.mark.usefixtures("impatient")
def test_a_server_that_refuses_a_handshake_as_modern_ones_do_is_asked_once_more() -> None:
    era = Era()
    with pytest.raises(Unspeakable, match="refused initialize with the error -32022"):
        meet(LaterServer({"result": FOUND}, seconds=60), era)
    assert era.is_stateless is True


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("revision", ["2026-07-28", "2040-01-01"])
def test_a_slow_server_that_accepts_a_handshake_with_an_odd_revision_is_connected_to_again(
    revision: str,
) -> None:
    era = Era()
    with pytest.raises(Unspeakable, match="does not speak"):
        meet(SlowServer({"result": FOUND}, revision), era)
    assert era.is_stateless is True


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("known", "is_stateless"), [("server/discover", True), ("initialize", False)])
def test_a_slow_server_that_ends_at_a_message_is_not_sent_it_again(known: str, is_stateless: bool) -> None:
    era = Era()
    with pytest.raises(ConnectionLost):
        meet(EndingServer(known), era)
    assert era.is_stateless is is_stateless


@pytest.mark.usefixtures("impatient")
def test_a_slow_server_that_refuses_both_questions_is_not_spoken_with() -> None:
    era = Era()
    with pytest.raises(Unspeakable, match="server/discover with the error -32022"):
        meet(SlowModernServer({"error": {"code": -32022, "message": "no"}}), era)
    assert era.is_stateless is True


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("code", [-32601, -32602])
def test_a_slow_server_of_the_handshake_era_is_shaken_hands_with(code: int) -> None:
    era = Era()
    revision, sent = meet(SlowServer({"error": {"code": code, "message": "no"}}), era)
    assert (revision, era.is_stateless) == ("2025-06-18", False)
    assert sent == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.usefixtures("impatient")
def test_a_server_that_ignores_the_question_is_not_asked_it_again() -> None:
    era = Era()
    assert meet(DeafServer({}), era)[0] == "2025-06-18"
    assert era.is_stateless is False


@pytest.mark.usefixtures("impatient")
def test_without_one_stream_for_all_no_answer_says_nothing() -> None:
    server, era = DeafServer({}), Era()
    server.knows_requests = True
    assert meet(server, era)[0] == "2025-06-18"
    assert era.is_stateless is None
    assert server.abandoned == [1]


@pytest.mark.usefixtures("impatient")
def test_a_known_server_without_a_handshake_may_take_the_time_that_a_start_has() -> None:
    with pytest.raises(TimeoutError):
        meet(DeafServer({}), Era(is_stateless=True))


def test_a_revision_that_we_do_not_speak_is_refused() -> None:
    with pytest.raises(Unspeakable, match="does not speak"):
        meet(Server({"error": {"code": -32601, "message": "no"}}, "1999-01-01"), Era())
