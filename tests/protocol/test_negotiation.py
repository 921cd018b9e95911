"""Which revision a message is in, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.mcp.method_handlers import subscribe, unsubscribe
from portbook.protocol.negotiation import Session
from portbook.stores.connection_clock_and_errors import StoreError
from support.held_sessions import HERE, Held
from support.in_process_connection import META, STATELESS_META, Connection, handshake
from support.mcp_http_client import EVERYTHING, run, serving


@pytest.mark.parametrize("asked", ["2099-01-01", "2026-07-28", "1.0", ""])
def test_initialize_offers_the_newest_handshake_for_a_revision_it_cannot_agree_to(
    connection: Connection, asked: str
) -> None:
    assert connection.request("initialize", handshake(asked))["result"]["protocolVersion"] == "2025-11-25"


def test_an_official_request_before_initialize_is_told_what_to_do(connection: Connection) -> None:
    error = connection.request("tools/list")["error"]
    assert error["code"] == -32602
    assert "initialize" in error["data"]["violations"][0]["message"]
    assert connection.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("version", "code"), [("2099-01-01", -32022), ("2025-06-18", -32022), (5, -32602), (None, -32602)]
)
def test_a_revision_that_is_not_spoken_is_refused_with_those_that_are(
    connection: Connection, version: object, code: int
) -> None:
    error = connection.request(
        "tools/list", {"_meta": {**STATELESS_META, META + "protocolVersion": version}}
    )["error"]
    assert error["code"] == code
    if code == -32022:
        assert error["data"]["supported"] == ["2026-07-28"]


def test_a_stateless_request_says_its_capabilities(connection: Connection) -> None:
    meta = {META + "protocolVersion": "2026-07-28"}
    assert connection.request("tools/list", {"_meta": meta})["error"]["code"] == -32602


# What a connection has agreed on and wants to hear, here and in another process.


def test_what_another_process_was_asked_for_holds_here_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client, serving(tmp_path) as neighbour:
            one, other = Held(client), Held(neighbour)
            name = await one.open()
            live, found = one.sessions.find(name, HERE), other.sessions.find(name, HERE)
            assert live is not None
            assert found is not None
            found.connection.session.hear_from("error")
            await other.sessions.keep(found)
            one.ticks.now += 1
            assert one.sessions.find(name, HERE) is live
            assert live.connection.session.level == "error"

    run(main())


def test_what_two_processes_were_asked_for_one_after_the_other_holds_in_both(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client, serving(tmp_path) as neighbour:
            one, other = Held(client), Held(neighbour)
            name = await one.open()
            live, found = one.sessions.find(name, HERE), other.sessions.find(name, HERE)
            assert live is not None
            assert found is not None
            here, there = live.connection.session, found.connection.session
            # Neither hears of the other before it is asked: only the store has it all.
            assert subscribe(here, "a:1")
            await one.sessions.keep(live)
            assert subscribe(there, "a:2")
            await other.sessions.keep(found)
            here.hear_from("error")
            await one.sessions.keep(live)
            assert here.watched == {"a:1", "a:2"}
            unsubscribe(there, "a:1")
            await other.sessions.keep(found)
            assert subscribe(here, "a:1")  # which it still takes for watched
            await one.sessions.keep(live)
            kept = one.kept.load(name)
            assert kept is not None
            assert kept.state["watched"] == ["a:1", "a:2"]
            assert kept.state["level"] == "error"

    run(main())


def test_what_could_not_be_stored_is_stored_with_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            live = held.sessions.find(await held.open(), HERE)
            assert live is not None
            session = live.connection.session

            async def away(*_: object) -> None:
                raise StoreError("away")

            with monkeypatch.context() as patched:
                patched.setattr(held.kept, "save", away)
                for uri in ("a:1", "a:2"):
                    subscribe(session, uri)
                    await held.sessions.keep(live)
            assert session.watched == {"a:1", "a:2"}
            subscribe(session, "a:3")
            unsubscribe(session, "a:1")
            await held.sessions.keep(live)
            kept = held.kept.load(live.id)
            assert kept is not None
            assert kept.state["watched"] == ["a:2", "a:3"]

    run(main())


def test_only_so_much_waits_for_a_store_that_is_away() -> None:
    session = Session()
    unsubscribe(session, "unstored")
    session.is_stored = True
    for number in range(10):
        unsubscribe(session, f"{number}" * 20_000)
        session.put_back(session.take_wishes())
    assert [uri[0] for uri in session.wishes.watched] == ["4", "5", "6", "7", "8", "9"]


def test_of_what_a_client_can_do_only_names_are_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            large = {"x": {"y": "a" * 100_000}}
            name = await held.open(
                elicitation={"form": large, "url": {}}, roots={"listChanged": True}, experimental=large
            )
            kept = held.kept.load(name)
            assert kept is not None
            assert kept.state["capabilities"] == {
                "elicitation": {"form": {}, "url": {}},
                "roots": {"listChanged": {}},
                "experimental": {"x": {}},
            }
            odd = {f"{number}" * 1000: {} for number in range(10)}
            kept = held.kept.load(await held.open(elicitation={str(n): {} for n in range(99)}, sampling=odd))
            assert kept is not None
            assert len(str(kept.state)) < 1000

    run(main())


@pytest.mark.parametrize(("level", "count"), [("debug", 3), ("info", 3), ("error", 0), (None, 3)])
def test_a_log_goes_to_a_session_that_wants_its_level(tmp_path: Path, level: str | None, count: int) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            if level is not None:
                assert await client.result("logging/setLevel", {"level": level}) == {}
            exchange = await client.ask("tools/call", {"name": "test_tool_with_logging"}).ended()
            assert len(exchange.messages) == count + 1

    run(main())
