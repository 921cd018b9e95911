"""A stream as the store has it: read as it grows, and ended where nobody fills it any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from portbook.clock import SystemClock
from portbook.doors.http.mcp.resumable_streams import StreamPosition
from portbook.doors.http.mcp.shared_streams import StoredStream
from portbook.mcp.node_mail_and_relay import Bell, Node
from portbook.stores.sqlite_store import Store
from portbook.stores.stream_rows import StreamChange, StreamRows
from support.mcp_http_client import run


class Reader:
    """Reads the stream x.1 at a node that believes what a test says of the one that fills it."""

    def __init__(self, rows: StreamRows) -> None:
        self.is_alive = True
        self.bell = Bell()
        self.written: list[bytes] = []
        node = SimpleNamespace(store_bell=self.bell, wake=self.bell.ring, lives=self._lives, is_closing=False)
        self.stream = StoredStream(rows, cast("Node", node), "s", "x.1", "2025-11-25")

    async def _lives(self, name: str) -> bool:
        return self.is_alive

    async def write(self, data: bytes) -> None:
        self.written.append(data)

    def read(self, after: int) -> asyncio.Task[None]:
        copying = self.stream.copy_to(self.write, StreamPosition(self.stream, after))
        return asyncio.get_running_loop().create_task(copying)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.written) < count:
                await asyncio.sleep(0.001)


def part(event: bytes, name: bytes) -> bytes:
    """What an event says under a name."""
    [found] = [line for line in event.split(b"\n") if line.startswith(name + b": ")]
    return found.removeprefix(name + b": ")


@asynccontextmanager
async def filled(path: Path) -> AsyncIterator[StreamRows]:
    store = Store(path / "portbook.db")
    rows = StreamRows(store, SystemClock())
    await rows.begin("s", "x.1", "node", '"seven"')
    await rows.change([StreamChange("s", "x.1", [(1, '"one"'), (2, '"two"')], (), False)])
    yield rows
    store.close()


async def enter(rows: StreamRows, reader: Reader) -> None:
    found = await rows.after("s", "x.1", 0)
    assert found is not None
    await reader.stream.enter(found.row)


def test_it_is_read_as_it_grows_by_the_latest_reader_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with filled(tmp_path) as rows:
            first, second = Reader(rows), Reader(rows)
            await enter(rows, first)
            reading = first.read(1)
            await first.until(1)
            await enter(rows, second)
            first.bell.ring()
            await reading
            reading = second.read(0)
            await second.until(2)
            await rows.change([StreamChange("s", "x.1", [(3, '"three"')], (), True)])
            second.bell.ring()
            await reading
            assert [part(each, b"id") for each in first.written] == [b"x.1-2"]
            assert [part(each, b"id") for each in second.written] == [b"x.1-1", b"x.1-2", b"x.1-3"]

    run(main())


def test_it_ends_with_an_unknown_outcome_where_its_node_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        async with filled(tmp_path) as rows:
            reader = Reader(rows)
            await enter(rows, reader)
            reading = reader.read(9)  # its client had more than its node could store
            await asyncio.sleep(0)
            reader.is_alive = False
            reader.bell.ring()
            await reading
            [told] = reader.written
            assert part(told, b"id") == b"x.1-10"
            answer = json.loads(part(told, b"data"))
            assert (answer["id"], answer["error"]["data"]["reason"]) == ("seven", "OUTCOME_UNKNOWN")
            again = Reader(rows)  # the same for all
            await enter(rows, again)
            await again.read(9)
            assert again.written == [told]

    run(main())
