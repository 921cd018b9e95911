"""Sessions of two nodes in this process: who reads which stream, and what a single process does not pay."""

from __future__ import annotations

import asyncio
from pathlib import Path

from portbook.stores.connection_clock_and_errors import Connection
from support.mcp_http_client import EVERYTHING, Client, Exchange, run, serving

TABLES = ("mail", "mail_counter", "stream", "stream_event", "task")


def rows(client: Client) -> dict[str, int]:
    def count(connection: Connection) -> dict[str, int]:
        return {table: int(connection.execute(f"SELECT count(*) FROM {table}").get) for table in TABLES}

    return client.served.store.read(count, {})


def told(exchange: Exchange) -> set[str]:
    return {each["method"] for each in exchange.messages}


def beside(client: Client, other: Client) -> None:
    """Let `other` be the same client at a different node."""
    other.session, other.revision = client.session, client.revision


def test_a_single_process_writes_nothing_for_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            stream = client.start(method="GET")
            await client.result("tools/call", {"name": "test_tool_with_progress", "arguments": {}})
            await client.result("tools/call", {"name": "test_trigger_tool_change", "arguments": {}})
            await stream.until(lambda: len(stream.messages) > 0)
            assert client.served.nodes is None
            assert rows(client) == dict.fromkeys(TABLES, 0)
            await stream.leave()

    run(main())


def test_a_plain_call_at_a_node_writes_no_row(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, is_shared=True) as client:
            await client.open("2025-11-25")
            before = rows(client)
            for _ in range(5):
                await client.result("tools/call", {"name": "greet", "arguments": {"name": "x"}})
            assert rows(client) == before
            assert before["mail"] == before["stream_event"] == before["task"] == 0

    run(main())


def test_a_client_with_an_expired_event_does_not_replace_a_reader_elsewhere(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            serving(tmp_path, EVERYTHING, is_shared=True) as client,
            serving(tmp_path, EVERYTHING, is_shared=True) as other,
        ):
            await client.open("2025-11-25")
            beside(client, other)
            stream = client.start(method="GET")
            await stream.until(lambda: len(stream.events) > 0)
            guest = await other.send(method="GET", last_event_id="feedface.7-3")
            assert guest.status == 409
            await stream.leave()
            # Its leaving is stored; then a guest may read, without ids to resume from.
            for _ in range(500):
                guest = other.start(method="GET", last_event_id="feedface.7-3")
                await guest.until(lambda guest=guest: guest.status != 0)
                if guest.status == 200:
                    break
                await asyncio.sleep(0.01)
            while not guest.messages:
                await client.result("tools/call", {"name": "test_trigger_tool_change", "arguments": {}})
                await asyncio.sleep(0.05)
            assert {identifier for identifier, _ in guest.events} == {None}
            await guest.leave()

    run(main())


def test_what_nobody_has_read_waits_for_the_next_reader_at_any_node(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            serving(tmp_path, EVERYTHING, is_shared=True) as client,
            serving(tmp_path, EVERYTHING, is_shared=True) as other,
        ):
            await client.open("2025-06-18")  # without ids at the beginning of a stream
            beside(client, other)
            await client.result("tools/call", {"name": "test_trigger_prompt_change", "arguments": {}})
            first = other.start(method="GET")
            await first.until(lambda: len(first.messages) > 0)
            assert told(first) == {"notifications/prompts/list_changed"}
            await first.leave()
            await client.result("tools/call", {"name": "test_trigger_tool_change", "arguments": {}})
            second = client.start(method="GET")
            await second.until(lambda: "notifications/tools/list_changed" in told(second))
            await second.leave()

    run(main())


def test_an_answer_to_no_question_is_recorded_where_it_would_have_been_asked(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            serving(tmp_path, EVERYTHING, is_shared=True) as client,
            serving(tmp_path, EVERYTHING, is_shared=True) as other,
        ):
            await client.open("2025-11-25")
            beside(client, other)
            assert client.served.nodes is not None
            asker = client.served.nodes.node.name
            before = len(client.sink.records)
            assert (await other.reply({"id": f"{asker}.0123456789ab-1"}, {})).status == 202
            async with asyncio.timeout(30):
                while len(client.sink.records) == before:
                    await asyncio.sleep(0.005)
            assert client.sink.records[-1]["error"]["reason"] == "IGNORED"

    run(main())
