"""Sessions as one process has them: their streams, what is under way, and who makes room for whom."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from portbook.doors.http.mcp import sessions_in_memory as mcp_live
from support.held_sessions import HERE, Held
from support.mcp_http_client import EVERYTHING, Client, run, serving


@pytest.mark.covers("design.mcp-http.resumption")
def test_whoever_comes_back_with_the_last_event_gets_the_rest_and_nothing_twice(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "t"}}
            exchange = client.ask("tools/call", params)
            await exchange.until(lambda: len(exchange.messages) == 1)
            seen = exchange.events
            await exchange.leave()
            resumed = await client.send(method="GET", last_event_id=str(seen[-1][0]))
            messages = [*exchange.messages, *resumed.messages]
            assert [m["params"]["progress"] for m in messages[:-1]] == [0, 50, 100]
            assert "result" in messages[-1]
            assert len({identifier for identifier, _ in (*exchange.events, *resumed.events)}) == 5

    run(main())


def test_a_call_in_a_session_can_be_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            given = {"name": "slow_compute", "arguments": {"seconds": 30, "label": "x"}}
            exchange = client.ask("tools/call", given, id="mine")
            await asyncio.sleep(0)
            assert (await client.notify("notifications/cancelled", {"requestId": "mine"})).status == 202
            await exchange.ended()
            assert (exchange.status, exchange.is_stream, exchange.messages) == (200, True, [])
            assert client.sink.records[-1]["error"]["reason"] == "CANCELLED"
            exchange = client.start(
                {"jsonrpc": "2.0", "id": "again", "method": "tools/call", "params": given},
                accept="application/json",
            )
            await asyncio.sleep(0)
            await client.notify("notifications/cancelled", {"requestId": "again"})
            assert (await exchange.ended()).status == 202

    run(main())


def test_who_was_not_there_for_the_longest_time_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_live, "_MAX_LIVE", 4)
    monkeypatch.setattr(mcp_live, "_MAX_OF_CALLER", 3)

    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            lives = {name: held.sessions.find(name, HERE) for name in [await held.open() for _ in range(3)]}
            first, second, third = lives
            held.ticks.now += 1  # who was there is noted by the second
            held.sessions.find(first, HERE)
            await held.open()
            assert held.sessions.find(first, HERE) is lives[first]
            assert held.sessions.find(third, HERE) is lives[third]
            assert held.sessions.find(second, HERE) is not lives[second]  # from the store

    run(main())


def test_who_listens_is_not_pushed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_live, "_MAX_LIVE", 2)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            listening = client.start(method="GET")
            await listening.until(lambda: bool(listening.events))
            for _ in range(5):
                await Client.open(client, "2025-11-25")
            client.served.toolsets[0].disable("now_and_then")
            await listening.until(lambda: bool(listening.messages))
            client.served.toolsets[0].enable("now_and_then")
            await listening.leave()

    run(main())


def test_a_session_that_is_not_used_leaves_memory_and_comes_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            name = await held.open()
            live = held.sessions.find(name, HERE)
            held.ticks.now += 3601
            await held.open()
            again = held.sessions.find(name, HERE)
            assert again is not None
            assert again is not live

    run(main())


def test_keys_that_nobody_looks_at_are_all_the_same_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_live, "_MAX_OF_CALLER", 3)

    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            for number in range(6):
                await held.open(replace(HERE, key=f"made up {number}"))
            assert len(held.sessions._live) == 3

    run(main())
