from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from portbook.doors.http.mcp.resumable_streams import (
    EventStream,
    RetainedStreams,
    StreamBudget,
    StreamPosition,
)
from portbook.wire.sse import event, priming


def wanted() -> bool:
    return True


class Reader:
    """Reads a stream from a position on."""

    def __init__(self, position: StreamPosition, may_read: Callable[[], bool] = lambda: True) -> None:
        self.read: list[bytes] = []
        self._news = asyncio.Event()
        self.reading = asyncio.create_task(position.stream.copy_to(self._write, position, may_read))

    async def _write(self, data: bytes) -> None:
        self.read.append(data)
        self._news.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.read) < count:
                self._news.clear()
                await self._news.wait()

    async def ended(self) -> list[bytes]:
        async with asyncio.timeout(10):
            await self.reading
        return self.read


def test_a_stream_is_written_whole_to_whoever_reads_it_whenever_they_do() -> None:
    async def main() -> None:
        stream = EventStream("7", is_primed=True)
        stream.emit(b"1", wanted)
        reader = Reader(StreamPosition(stream, is_primed=True))
        await reader.until(2)
        threading.Thread(target=stream.emit, args=(b"2", wanted)).start()
        await reader.until(3)
        stream.emit(b"unwanted", lambda: False)
        stream.end(b"3")
        stream.emit(b"too late", wanted)
        assert await reader.ended() == [
            priming("7-0", 500),
            event(b"1", "7-1"),
            event(b"2", "7-2"),
            event(b"3", "7-3"),
        ]
        assert await Reader(StreamPosition(stream, 2)).ended() == [event(b"3", "7-3")]

    asyncio.run(main())


def test_whoever_keeps_up_hears_everything_however_much_it_is() -> None:
    async def main() -> None:
        stream = EventStream("1")
        reader = Reader(StreamPosition(stream))
        for number in range(2500):
            stream.emit(b"%d" % number, wanted)
            await reader.until(number + 1)
        stream.end(None)
        assert await reader.ended() == [event(b"%d" % number, f"1-{number + 1}") for number in range(2500)]

    asyncio.run(main())


def test_whoever_comes_late_hears_what_is_newest_and_what_is_vital() -> None:
    async def main() -> None:
        stream = EventStream("1")
        stream.emit(b"vital", wanted, is_vital=True)
        for number in range(2000):
            stream.emit(b"%d" % number, wanted)
        stream.end(b"answer")
        read = await Reader(StreamPosition(stream)).ended()
        assert len(read) == 1000
        assert read[:2] == [event(b"vital", "1-1"), event(b"1002", "1-1004")]
        assert read[-2:] == [event(b"1999", "1-2001"), event(b"answer", "1-2002")]

    asyncio.run(main())


def test_bytes_are_bounded_too_whatever_the_sizes() -> None:
    async def main() -> None:
        stream = EventStream("1")
        for _ in range(900):
            stream.emit(b"s" * 4096, wanted)
        for _ in range(10):
            stream.emit(b"L" * 2_000_000, wanted)
            assert stream.bytes <= 4 * 1024 * 1024
        for _ in range(10):
            stream.emit(b"V" * 2_000_000, wanted, is_vital=True)
            assert stream.bytes <= 4 * 1024 * 1024

    asyncio.run(main())


def test_a_notice_that_still_waits_to_be_read_says_all_that_an_equal_one_would() -> None:
    async def main() -> None:
        stream = EventStream("1", is_deduplicated=True)
        for message in (b"a", b"b", b"a", b"b", b"a"):
            stream.emit(message, wanted)
        reader = Reader(StreamPosition(stream))
        await reader.until(2)
        stream.emit(b"a", wanted)
        stream.end(None)
        assert await reader.ended() == [event(b"a", "1-1"), event(b"b", "1-2"), event(b"a", "1-3")]
        assert stream.is_delivered

    asyncio.run(main())


def test_who_comes_last_is_the_one_who_reads() -> None:
    async def main() -> None:
        stream = EventStream("1")
        first = Reader(StreamPosition(stream))
        stream.emit(b"1", wanted)
        await first.until(1)
        second = Reader(StreamPosition(stream, 1))
        assert await first.ended() == [event(b"1", "1-1")]
        stream.emit(b"2", wanted)
        await second.until(1)
        assert stream.is_read
        stream.end(None)
        assert await second.ended() == [event(b"2", "1-2")]
        assert not stream.is_read
        assert first.read == [event(b"1", "1-1")]

    asyncio.run(main())


def test_who_may_no_longer_read_hears_nothing_more() -> None:
    async def main() -> None:
        stream = EventStream("1")
        allowed = [True]
        reader = Reader(StreamPosition(stream), lambda: allowed[0])
        stream.emit(b"1", wanted)
        await reader.until(1)
        allowed[0] = False
        stream.emit(b"2", wanted)
        assert await reader.ended() == [event(b"1", "1-1")]

    asyncio.run(main())


# Its name, whether it is primed, whether something was said before, and whether its reader then leaves.
LEAVING = {
    "no ids": (None, False, True, False),
    "primed": ("1", True, False, True),
    "has had an event": ("1", False, True, True),
    "has had no event": ("1", False, False, False),
}


@pytest.mark.parametrize("case", LEAVING)
def test_a_reader_leaves_only_with_something_to_come_back_with(case: str) -> None:
    name, is_primed, has_message, leaves = LEAVING[case]

    async def main() -> None:
        stream = EventStream(name, is_primed=is_primed)
        if has_message:
            stream.emit(b"1", wanted)
        reader = Reader(StreamPosition(stream, is_primed=is_primed, may_be_sent_away=True))
        stream.let_go()
        if leaves:
            last = (await reader.ended())[-1]
            assert last.startswith(b"id: 1-")
            back = Reader(
                StreamPosition(stream, stream.end_position)
            )  # who has come back is not sent away again
            stream.end(b"answer")
            assert len(await back.ended()) == 1
        else:
            stream.end(b"answer")
            assert b"answer" in (await reader.ended())[-1]

    asyncio.run(main())


# -- where streams are kept


def _ended(name: str, size: int) -> EventStream:
    stream = EventStream(name)
    stream.end(b"x" * size)
    return stream


def test_a_session_keeps_so_many_streams_and_so_many_bytes_of_them() -> None:
    async def main() -> None:
        retained = RetainedStreams(StreamBudget())
        own = EventStream("own")
        retained.put(own)
        running = EventStream("running")
        retained.put(running)
        for number in range(100):
            retained.put(_ended(f"small-{number}", 10))
        assert retained.find("own") is own
        assert retained.find("running") is running
        assert retained.find("small-0") is None
        assert sum(retained.find(f"small-{number}") is not None for number in range(100)) == 62
        for number in range(20):
            retained.put(_ended(f"large-{number}", 1_000_000))
            assert retained.bytes <= 8 * 1024 * 1024
        assert retained.find("large-0") is None
        assert retained.find("large-19") is not None
        for number in range(20):  # what runs goes on, without its history
            running.emit(b"%d" % number * 500_000, wanted)
        assert retained.bytes <= 8 * 1024 * 1024 + 1_000_000
        retained.clear()
        assert retained.bytes == 0

    asyncio.run(main())


def test_all_sessions_share_one_limit_and_what_ended_first_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("portbook.doors.http.mcp.resumable_streams.MAX_BYTES_OF_ALL", 10_000)

    async def main() -> None:
        budget = StreamBudget()
        sessions = [RetainedStreams(budget) for _ in range(5)]
        for retained in sessions:
            retained.put(_ended("a", 3000))
        assert budget.bytes <= 10_000
        assert [retained.find("a") is not None for retained in sessions] == [False, False, True, True, True]
        for retained in sessions:
            retained.clear()
        assert budget.bytes == 0

    asyncio.run(main())


def test_a_stream_that_was_read_to_its_end_goes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portbook.doors.http.mcp.resumable_streams.KEPT_READ_S", 0.0)

    async def main() -> None:
        budget = StreamBudget()
        retained = RetainedStreams(budget)
        stream = EventStream("1")
        retained.put(stream)
        stream.emit(b"1", wanted)
        stream.end(b"answer")
        await asyncio.sleep(0)
        assert retained.find("1") is stream  # nobody has read it yet
        await Reader(StreamPosition(stream)).ended()
        async with asyncio.timeout(10):
            while retained.find("1") is not None:
                await asyncio.sleep(0)
        assert (retained.bytes, budget.bytes, budget.ended) == (0, 0, {})

    asyncio.run(main())
