"""A session's own stream over nodes: where a reader begins, and that the latest is the only one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from portbook.clock import SystemClock
from portbook.doors.http.mcp.resumable_streams import StreamPosition
from portbook.doors.http.mcp.shared_streams import OwnStream, OwnStreams
from portbook.mcp.connection import McpConnection
from portbook.mcp.list_and_resource_changes import ChangeNotification
from portbook.mcp.node_mail_and_relay import CHANGE, NOTICE, Node, NodeLease
from portbook.stores.mailbox import DraftMail, Mailbox
from portbook.stores.sqlite_store import Store
from portbook.stores.stream_rows import StreamRows
from support.mcp_http_client import run


class Tells:
    """A connection whose client is told of every changed resource but one."""

    def told_of(self, change: ChangeNotification) -> bytes | None:
        uri = change.changed.uri
        return None if uri == "x://secret" else json.dumps(uri).encode()


class Reader:
    def __init__(self, streams: OwnStreams, after: int | None = None) -> None:
        self.events: list[tuple[str, Any]] = []
        stream = OwnStream(streams, "s", cast("McpConnection", Tells()))
        self.task = asyncio.create_task(stream.copy_to(self._write, StreamPosition(stream, after)))

    async def _write(self, data: bytes) -> None:
        fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if ": " in line)
        if "data" in fields:
            self.events.append((fields["id"], json.loads(fields["data"])))

    async def until(self, count: int) -> list[tuple[str, Any]]:
        async with asyncio.timeout(30):
            while len(self.events) < count:
                await asyncio.sleep(0.002)
        return self.events

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))


@asynccontextmanager
async def streams_at(path: Path) -> AsyncIterator[tuple[OwnStreams, Node]]:
    store = Store(path)
    node = Node(NodeLease(store, os.urandom), Mailbox(store, SystemClock()), store.version)
    node.start()
    while not node.store_bell.turn:
        await asyncio.sleep(0.001)
    try:
        yield OwnStreams(StreamRows(store, SystemClock()), node), node
    finally:
        await node.close()
        store.close()
        node.release()


def changed(uri: str) -> DraftMail:
    return DraftMail(CHANGE, json.dumps(["resource", uri]))


async def entered(streams: OwnStreams) -> None:
    async with asyncio.timeout(30):
        while not streams.is_read("s"):
            await asyncio.sleep(0.002)


def test_a_reader_gets_what_is_for_its_session_and_may_be_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with streams_at(tmp_path / "db") as (streams, node):
            reader = Reader(streams)
            await entered(streams)
            at = node.at + 1  # what says that it reads
            other, own = DraftMail(NOTICE, '"theirs"', "other"), DraftMail(NOTICE, '"ours"', "s")
            await node.tell(changed("x://a"), changed("x://secret"), other, own, changed("x://b"))
            events = await reader.until(3)
            assert [message for _, message in events] == ["x://a", "ours", "x://b"]
            numbers = [int(identifier.removeprefix("0-")) for identifier, _ in events]
            assert numbers == [numbers[0], numbers[0] + 3, numbers[0] + 4]
            assert numbers[0] > at - 1
            await reader.leave()

    run(main())


def test_the_next_reader_goes_on_at_any_node_where_the_last_one_was(tmp_path: Path) -> None:
    async def main() -> None:
        async with streams_at(tmp_path / "db") as (one, node), streams_at(tmp_path / "db") as (other, _):
            first = Reader(one)
            await entered(one)
            await node.tell(changed("x://a"))
            [(identifier, _)] = await first.until(1)
            await first.leave()
            await node.tell(changed("x://b"), changed("x://b"))  # the same, unread: once is enough
            second = Reader(other)
            assert [message for _, message in await second.until(1)] == ["x://b"]
            third = Reader(one, int(identifier.removeprefix("0-")))
            await second.task  # replaced
            assert [message for _, message in await third.until(1)] == ["x://b"]
            await node.tell(changed("x://c"))
            assert [message for _, message in await third.until(2)] == ["x://b", "x://c"]
            assert len(second.events) == 1
            one.close()
            await third.task

    run(main())
