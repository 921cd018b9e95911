"""What a connection has agreed on and wants to hear, here and in another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.mcp.method_handlers import subscribe, unsubscribe
from portbook.protocol.negotiated_session import Session
from portbook.stores.store_errors import StoreError
from support.held_sessions import HERE, Held
from support.mcp_http_client import EVERYTHING, run, serving


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
