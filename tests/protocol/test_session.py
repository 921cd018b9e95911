"""What a connection has agreed on and wants to hear, here and in another process."""

from __future__ import annotations

from pathlib import Path

import pytest

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
