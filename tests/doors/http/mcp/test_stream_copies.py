"""Copies of streams: as bounded as the streams, written together, and not lost when a write fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from portbook.clock import SystemClock
from portbook.doors.http.mcp.kept_events_and_stream_limits import MAX_REPORT_BYTES
from portbook.doors.http.mcp.resumable_streams import EventStream
from portbook.doors.http.mcp.shared_streams import StreamCopies
from portbook.mcp.node_mail_and_relay import Node
from portbook.stores.connection_clock_and_errors import StoreError, UnknownOutcome
from portbook.stores.sqlite_store import Store
from portbook.stores.stream_rows import StreamChange, StreamRows
from support.mcp_http_client import run

NODE = cast("Node", SimpleNamespace(name="node", wake=lambda: None))


def yes() -> bool:
    return True


async def stored(rows: StreamRows, name: str) -> tuple[list[int], bool]:
    found, positions = await rows.after("s", name, 0), list[int]()
    while found is not None:
        positions += [position for position, _ in found.events]
        if not found.is_more:
            return positions, found.row.is_ended
        found = await rows.after("s", name, positions[-1])
    raise AssertionError("it is not stored")


def test_what_a_stream_drops_is_dropped_in_the_store(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store(tmp_path / "portbook.db")
        rows = StreamRows(store, SystemClock())
        copies, stream = StreamCopies(rows, NODE), EventStream("x.1")
        stream.emit(b'"before"', yes, is_vital=True)
        await copies.keep("s", stream, "1")
        report = b'"' + b"r" * 16_384 + b'"'
        for _ in range(64):
            stream.emit(report, yes)
            await asyncio.sleep(0)
        stream.end(b'"answer"')
        await copies.flush()
        positions, is_ended = await stored(rows, "x.1")
        assert is_ended
        assert positions[0] == 1
        assert positions[-1] == stream.end_position
        assert (len(positions) - 2) * len(report) <= MAX_REPORT_BYTES
        stream.expire()
        await copies.flush()
        assert await rows.after("s", "x.1", 0) is None
        store.close()

    run(main())


def test_reports_of_many_streams_are_written_together(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store(tmp_path / "portbook.db")
        rows, written = StreamRows(store, SystemClock()), list[int]()
        copies = StreamCopies(rows, NODE)
        change = rows.change

        async def counted(changes: Sequence[StreamChange]) -> None:
            written.append(sum(len(each.added) for each in changes))
            await change(changes)

        rows.change = counted  # type: ignore[method-assign]
        streams = [EventStream(f"x.{number}") for number in range(10)]
        for stream in streams:
            await copies.keep("s", stream, "1")
            for _ in range(10):
                stream.emit(b'"report"', yes)
        await copies.flush()
        assert sum(written) == 100
        assert len(written) <= 20  # not one for each report
        store.close()

    run(main())


def test_what_could_not_be_written_is_written_later(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("portbook.doors.http.mcp.shared_streams._RETRY_S", 0.001)

    async def main() -> None:
        store = Store(tmp_path / "portbook.db")
        rows, failures = StreamRows(store, SystemClock()), [StoreError("away"), StoreError("away")]
        copies, stream = StreamCopies(rows, NODE), EventStream("x.1")
        change = rows.change

        async def failing(changes: Sequence[StreamChange]) -> None:
            if failures:
                raise failures.pop()
            await change(changes)

        rows.change = failing  # type: ignore[method-assign]
        await copies.keep("s", stream, "1")
        stream.emit(b'"one"', yes)
        stream.emit(b'"two"', yes)
        stream.end(b'"answer"')
        await copies.flush()
        assert await stored(rows, "x.1") == ([1, 2, 3], True)
        store.close()

    run(main())


def test_a_stream_that_is_stored_late_is_filled_then_or_deleted(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("portbook.doors.http.mcp.shared_streams._PATIENCE_S", 0.01)

    async def main() -> None:
        store = Store(tmp_path / "portbook.db")
        rows, is_free = StreamRows(store, SystemClock()), asyncio.Event()
        copies, streams = StreamCopies(rows, NODE), [EventStream("x.1"), EventStream("x.2")]
        begin = rows.begin

        async def slow(session: str, name: str, node: str, request: str) -> None:
            await begin(session, name, node, request)
            await is_free.wait()

        rows.begin = slow  # type: ignore[method-assign]
        for stream in streams:
            await copies.keep("s", stream, "1")  # no longer than its patience
            stream.emit(b'"report"', yes, is_vital=True)
            stream.end(b'"answer"')
            assert not stream.is_copied  # this node reads it from memory
        streams[1].expire()
        is_free.set()
        while not streams[0].is_copied:
            await asyncio.sleep(0.001)
        monkeypatch.setattr("portbook.doors.http.mcp.shared_streams._PATIENCE_S", 30.0)
        await copies.flush()
        assert await stored(rows, "x.1") == ([1, 2], True)
        assert await rows.after("s", "x.2", 0) is None
        store.close()

    run(main())


def test_a_stream_is_filled_though_it_is_unknown_whether_its_row_is_there(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store(tmp_path / "portbook.db")
        rows = StreamRows(store, SystemClock())
        copies, stream, begin = StreamCopies(rows, NODE), EventStream("x.1"), rows.begin

        async def unsure(session: str, name: str, node: str, request: str) -> None:
            await begin(session, name, node, request)
            raise UnknownOutcome("the connection broke")

        rows.begin = unsure  # type: ignore[method-assign]
        await copies.keep("s", stream, "1")
        stream.end(b'"answer"')
        await copies.flush()
        assert await stored(rows, "x.1") == ([1], True)
        store.close()

    run(main())
