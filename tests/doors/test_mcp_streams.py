from __future__ import annotations

import asyncio
import threading

from portbook.doors.mcp_streams import Stream
from portbook.wire.sse import event, priming


def wanted() -> bool:
    return True


def test_a_stream_is_written_whole_to_whoever_reads_it_whenever_they_do() -> None:
    async def main() -> None:
        stream = Stream("7", is_primed=True)
        written: list[bytes] = []

        async def write(data: bytes) -> None:
            written.append(data)

        stream.emit(b"1", wanted)
        reading = asyncio.create_task(stream.copy_to(write))
        await asyncio.sleep(0)
        threading.Thread(target=stream.emit, args=(b"2", wanted)).start()
        while len(written) < 3:
            await asyncio.sleep(0.001)
        stream.emit(b"unwanted", lambda: False)
        stream.end(b"3")
        stream.emit(b"too late", wanted)
        await reading
        assert written == [priming("7-0", 500), event(b"1", "7-1"), event(b"2", "7-2"), event(b"3", "7-3")]
        written.clear()
        await stream.copy_to(write, 2)
        assert written == [event(b"3", "7-3")]

    asyncio.run(main())


def test_a_stream_that_nobody_reads_is_bounded_and_keeps_what_is_vital() -> None:
    async def main() -> None:
        stream = Stream("1")
        for number in range(2000):
            stream.emit(b"%d" % number, wanted)
        assert stream.end_position == 1000
        stream.emit(b"vital", wanted, is_vital=True)
        stream.end(b"answer")
        written: list[bytes] = []

        async def write(data: bytes) -> None:
            written.append(data)

        await stream.copy_to(write, 0)
        assert written[-2:] == [event(b"vital", "1-1001"), event(b"answer", "1-1002")]
        assert len(written) == 1000

    asyncio.run(main())


def test_only_a_stream_with_ids_lets_its_reader_go() -> None:
    async def main() -> None:
        for name in (None, "1"):
            stream = Stream(name)
            stream.let_go()
            assert stream.is_let_go == (name is not None)

    asyncio.run(main())
