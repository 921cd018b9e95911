"""How one request is answered: as a document or as a stream, whether its sender stays or not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from portbook.doors.http import mounted_asgi_app as asgi
from support.in_process_connection import EVERY_REVISION, HANDSHAKES
from support.mcp_http_client import EVERYTHING, run, serving


@pytest.mark.covers("design.mcp-http.streams")
@pytest.mark.parametrize("revision", EVERY_REVISION)
def test_what_is_said_before_the_answer_comes_as_events_in_order(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open(revision)
            params = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "t"}}
            exchange = await client.ask("tools/call", params).ended()
            assert exchange.is_stream
            *told, answer = exchange.messages
            assert [message["params"]["progress"] for message in told] == [0, 50, 100]
            assert answer["id"] == 1
            ids = [identifier for identifier, _ in exchange.events]
            assert all(ids) if revision in HANDSHAKES else not any(ids)
            assert (exchange.events[0][1] is None) == (
                revision == "2025-11-25"
            )  # has an event to come back to

    run(main())


def test_a_tool_can_send_its_caller_away_to_come_back_for_the_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            exchange = await client.ask("tools/call", {"name": "test_reconnection"}).ended()
            [(identifier, message)] = exchange.events
            assert message is None
            assert b"retry: " in exchange.body
            resumed = await client.send(method="GET", last_event_id=str(identifier))
            assert resumed.messages[-1]["result"]["content"][0]["text"] == "Reconnection test completed"

    run(main())


def test_in_a_session_a_call_outlives_the_connection_that_made_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            exchange = client.ask(
                "tools/call", {"name": "slow_compute", "arguments": {"seconds": 0.2, "label": "x"}}
            )
            await asyncio.sleep(0)
            await exchange.leave()
            while not any(record["metadata"]["toolId"] for record in client.sink.records):
                await asyncio.sleep(0.01)
            assert client.sink.records[-1]["status"] == "ok"

    run(main())


def test_a_call_that_outlives_its_connection_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "WORKLOAD_BYTES", 150_000)
    large = {"name": "slow_compute", "arguments": {"seconds": 60, "label": "x" * 100_000}}

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            exchange = client.ask("tools/call", large, id=1)
            await asyncio.sleep(0)
            await exchange.leave()
            refused = await client.ask("tools/call", large, id=2).ended()
            assert refused.status == 503
            cancel = {"method": "notifications/cancelled", "params": {"requestId": 1}}
            await client.send({"jsonrpc": "2.0", **cancel})
            while not any(record["metadata"]["toolId"] for record in client.sink.records):
                await asyncio.sleep(0.01)
            again = client.ask("tools/call", large, id=3)
            await asyncio.sleep(0)
            assert again.status != 503
            await again.leave()

    run(main())


def test_without_a_session_leaving_cancels_the_call(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            exchange = client.ask(
                "tools/call", {"name": "slow_compute", "arguments": {"seconds": 30, "label": "x"}}
            )
            await asyncio.sleep(0)
            await exchange.leave()
            assert client.sink.records[-1]["error"]["reason"] == "CANCELLED"
            assert exchange.body == b""

    run(main())


def test_calls_in_flight_together_each_have_their_own_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            params = {"name": "test_tool_with_progress", "arguments": {}}
            exchanges = [
                client.ask("tools/call", {**params, "_meta": {"progressToken": number}}, id=number)
                for number in range(10)
            ]
            for number, exchange in enumerate(exchanges):
                *told, answer = (await exchange.ended()).messages
                assert {message["params"]["progressToken"] for message in told} == {number}
                assert answer["id"] == number

    run(main())
