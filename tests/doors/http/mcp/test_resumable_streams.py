"""Streams at `/mcp` that are left and come back to: after breaks, after restarts, by the wrong readers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from portbook.doors.http.mounted_asgi_app import asgi_application
from portbook.doors.http.route_table import routes_of
from support.mcp_http_client import EVERYTHING, Client, Exchange, run, serving

WATCHED = "test://watched-resource"
PROGRESS = {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "t"}}


async def _listening(client: Client, **headers: str) -> Exchange:
    stream = client.start(method="GET", **headers)
    await stream.until(lambda: stream.status == 200)
    return stream


def _restart(client: Client) -> None:
    client._app = asgi_application(routes_of(client.served))


def _last_id(exchange: Exchange) -> str:
    return str(exchange.events[-1][0])


def test_the_stream_of_a_session_is_never_deaf(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            await client.result("resources/subscribe", {"uri": WATCHED})
            stream = await _listening(client)
            for number in range(1, 1101):
                client.served.toolsets[0].updated(WATCHED)
                await stream.until(lambda number=number: stream.body.count(b"resources/updated") == number)
            client.served.toolsets[0].disable("now_and_then")
            await stream.until(lambda: b"tools/list_changed" in stream.body)
            client.served.toolsets[0].enable("now_and_then")
            await stream.leave()

    run(main())


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_what_is_said_before_anybody_listens_is_heard_when_they_do(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open(revision)
            await client.result("resources/subscribe", {"uri": WATCHED})
            client.served.toolsets[0].updated(WATCHED)
            stream = await _listening(client)
            await stream.until(lambda: len(stream.messages) == 1)
            assert (stream.events[0][1] is None) == (revision == "2025-11-25")  # an id to come back with
            await stream.leave()
            client.served.toolsets[0].updated(WATCHED)
            client.served.toolsets[0].disable("now_and_then")
            client.served.toolsets[0].enable("now_and_then")
            stream = await _listening(client)
            await stream.until(lambda: len(stream.messages) == 2)  # and what was heard is not said again
            await stream.leave()

    run(main())


@pytest.mark.covers("design.mcp-http.one-reader")
def test_a_notice_is_heard_once_by_who_began_to_listen_last(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            first = await _listening(client)
            second = await _listening(client)
            await first.ended()
            client.served.toolsets[0].disable("now_and_then")
            await second.until(lambda: bool(second.messages))
            client.served.toolsets[0].enable("now_and_then")
            assert first.messages == []
            await second.leave()

    run(main())


def test_two_who_begin_to_listen_at_once_do_not_both_hear_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            streams = [client.start(method="GET") for _ in range(3)]
            for stream in streams:
                await stream.until(lambda stream=stream: stream.status == 200)
            client.served.toolsets[0].disable("now_and_then")
            await streams[0].ended()
            await streams[1].ended()
            assert sum(len(stream.messages) for stream in streams) == 1
            client.served.toolsets[0].enable("now_and_then")
            await streams[2].until(lambda: sum(len(stream.messages) for stream in streams) == 2)
            await streams[2].leave()

    run(main())


def test_a_caller_holds_a_limited_number_of_streams_and_may_open_one_when_one_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.doors.http.mcp.endpoint.MAX_LISTENING", 2)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            streams: list[Exchange] = []
            for _ in range(2):
                await client.open("2025-11-25")
                streams.append(await _listening(client))
            await client.open("2025-11-25")
            refused = await client.send(method="GET")
            assert (refused.status, refused.json["error"]["code"]) == (503, -31503)
            assert refused.json["error"]["data"]["reason"] == "TOO_MANY_STREAMS"
            await streams[0].leave()
            streams[0] = await _listening(client)
            for stream in streams:
                await stream.leave()

    run(main())


@pytest.mark.covers("design.mcp-http.resumption-after-restart")
def test_who_comes_back_after_a_restart_hears_what_is_new_and_nothing_of_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            await client.result("resources/subscribe", {"uri": WATCHED})
            stream = await _listening(client)
            for number in range(5):
                client.served.toolsets[0].updated(WATCHED)
                await stream.until(lambda number=number: len(stream.messages) == number + 1)
            old = await client.ask("tools/call", PROGRESS).ended()
            await stream.leave()
            _restart(client)
            back = await _listening(client, last_event_id=_last_id(stream))
            client.served.toolsets[0].updated(WATCHED)
            await back.until(lambda: len(back.messages) == 1)
            assert _last_id(back) != _last_id(stream)
            await back.leave()
            new = await client.ask("tools/call", PROGRESS).ended()
            assert not {each for each, _ in old.events} & {each for each, _ in new.events}
            lost = await _listening(client, last_event_id=str(old.events[0][0]))
            client.served.toolsets[0].updated(WATCHED)
            await lost.until(lambda: len(lost.messages) == 1)
            assert lost.messages[0]["method"] == "notifications/resources/updated"
            await lost.leave()

    run(main())


@pytest.mark.parametrize("last", ["nonsense", "99-1", "1-", "-", "0-999999", "1-99999999999999999999", "é-1"])
def test_an_event_that_never_was_leads_to_what_there_is_to_hear(tmp_path: Path, last: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            stream = await _listening(client, last_event_id=last)
            client.served.toolsets[0].disable("now_and_then")
            await stream.until(lambda: len(stream.messages) == 1)
            client.served.toolsets[0].enable("now_and_then")
            await stream.leave()

    run(main())


def test_a_position_that_never_was_is_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            stream = await _listening(client)
            await stream.until(lambda: bool(stream.events))
            name = _last_id(stream).rpartition("-")[0]
            back = await _listening(client, last_event_id=f"{name}-999999")
            client.served.toolsets[0].disable("now_and_then")
            await back.until(lambda: len(back.messages) == 1)
            client.served.toolsets[0].enable("now_and_then")
            await back.leave()

    run(main())


def test_who_asks_for_what_is_gone_does_not_push_out_who_listens(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            guest = await _listening(client, last_event_id="abcd.7-3")
            assert guest.events == []
            listener = await _listening(client)
            await guest.ended()  # and comes back with the same id
            assert (await client.send(method="GET", last_event_id="abcd.7-3")).status == 409
            client.served.toolsets[0].disable("now_and_then")
            await listener.until(lambda: len(listener.messages) == 1)
            client.served.toolsets[0].enable("now_and_then")
            await listener.leave()

    run(main())


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_nobody_is_sent_away_without_a_way_back_to_the_answer(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open(revision)
            exchange = await client.ask("tools/call", {"name": "test_reconnection"}).ended()
            messages = exchange.messages
            if not messages:
                back = await client.send(method="GET", last_event_id=_last_id(exchange))
                messages = back.messages
            assert messages[-1]["result"]["content"][0]["text"] == "Reconnection test completed"

    run(main())


def test_who_accepts_json_alone_is_not_sent_away(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            params = {"name": "test_reconnection"}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            exchange = await client.send(message, accept="application/json")
            assert exchange.json["result"]["content"][0]["text"] == "Reconnection test completed"

    run(main())


def test_the_answer_of_a_silent_call_can_be_had_after_a_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.doors.http.mcp.json_or_stream_reply._PRIMED_PATIENCE_S", 0.01)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            params = {"name": "slow_compute", "arguments": {"seconds": 0.3, "label": "x"}}
            exchange = client.ask("tools/call", params)
            await exchange.until(lambda: bool(exchange.events))  # long before the answer
            await exchange.leave()
            assert exchange.messages == []
            back = await client.send(method="GET", last_event_id=_last_id(exchange))
            assert back.messages[-1]["result"]["content"][0]["text"].startswith("x: computed")

    run(main())


def test_a_stream_has_one_reader_who_came_back_or_who_stayed(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            exchange = client.ask("tools/call", PROGRESS)
            await exchange.until(lambda: len(exchange.messages) == 1)
            back = await client.send(method="GET", last_event_id=_last_id(exchange))
            await exchange.ended()
            assert len(exchange.messages) + len(back.messages) == 4

    run(main())


def test_calls_that_nobody_can_come_back_to_gather_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-06-18")
            silent = {"name": "slow_compute", "arguments": {"seconds": 0.1, "label": "x"}}
            exchange = client.ask("tools/call", silent)
            await asyncio.sleep(0)
            await exchange.leave()
            assert exchange.events == []
            again = await client.ask("tools/call", PROGRESS, id=2).ended()
            assert len(again.messages) == 4

    run(main())
