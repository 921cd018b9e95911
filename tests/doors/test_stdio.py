"""Descriptors that never block the loop: all that is written arrives in order, however slow its reader."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import uvloop

from portbook.doors import stdio
from portbook.doors.stdio import Reader, Writer

pytestmark = pytest.mark.timeout(60)  # what blocks the loop hangs its test; that is a failure, not a wait

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Ends:
    """The two ends of a stream, each to be closed once: its number may be somebody else's by then."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self.writing = writing
        self._open = {reading, writing}

    def close(self, end: int) -> None:
        self._open.remove(end)
        os.close(end)

    def close_all(self) -> None:
        for end in list(self._open):
            self.close(end)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine on one of the two loops that Portbook runs on."""

    def run_on_loop(main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main)

    return run_on_loop


@pytest.fixture(params=["pipe", "socketpair"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """The reading and the writing end of a pipe, or of what Node.js gives its children instead of one."""
    if request.param == "pipe":
        made = Ends(*os.pipe())
    else:
        made = Ends(*(end.detach() for end in socket.socketpair()))
    yield made
    made.close_all()


def pattern(length: int) -> bytes:
    """Bytes in which no piece can be lost, doubled or moved unseen."""
    return b"".join(struct.pack(">I", at) for at in range(length // 4))


async def read_all(reader: Reader) -> bytes:
    chunks: list[bytes] = []
    while chunk := await reader.read():
        chunks.append(chunk)
    return b"".join(chunks)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# --- reading


def test_a_reader_returns_what_was_written_and_then_nothing(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        reader = Reader(reading)
        os.write(writing, b"one")
        assert await reader.read() == b"one"
        os.write(writing, b"two")
        ends.close(writing)
        assert [await reader.read() for _ in range(3)] == [b"two", b"", b""]

    run(main())


def test_a_reader_waits_without_holding_up_the_loop(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        waiting = asyncio.create_task(Reader(reading).read())
        await turns(20)
        assert not waiting.done()
        os.write(writing, b"late")
        assert await waiting == b"late"

    run(main())


def test_a_reader_that_nobody_reads_from_leaves_the_loop_alone(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        reader = Reader(reading)
        os.write(writing, b"one")
        assert await reader.read() == b"one"
        os.write(writing, b"two")
        await turns(5)
        assert reader._loop is None  # else the loop would be told of the same bytes without end
        assert await reader.read() == b"two"

    run(main())


def test_a_read_that_is_given_up_loses_no_bytes(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        reader = Reader(reading)
        given_up = asyncio.create_task(reader.read())
        await turns(2)
        given_up.cancel()
        await asyncio.wait((given_up,))
        os.write(writing, b"for the next")
        await turns(3)
        assert await reader.read() == b"for the next"

    run(main())


def test_a_reader_gets_every_byte_in_order(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing
    sent = pattern(2_000_000)

    def send() -> None:
        view = memoryview(sent)
        while view:
            view = view[os.write(writing, view[:70_001]) :]
        ends.close(writing)

    thread = threading.Thread(target=send)
    thread.start()
    assert run(read_all(Reader(reading))) == sent
    thread.join()


@pytest.mark.parametrize("content", [b"", b"one line\n", pattern(300_000)], ids=["empty", "short", "long"])
def test_a_reader_takes_a_regular_file(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "input").write_bytes(content)
    with (tmp_path / "input").open("rb") as file:
        assert run(read_all(Reader(file.fileno()))) == content


def test_reading_a_file_leaves_others_their_turn(run: Run, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(bytes(1_000_000))
    taken: list[int] = []

    async def other() -> None:
        while True:
            taken.append(1)
            await asyncio.sleep(0)

    async def main() -> None:
        with (tmp_path / "input").open("rb") as file:
            task = asyncio.create_task(other())
            await read_all(Reader(file.fileno()))
            task.cancel()

    run(main())
    assert len(taken) >= 1_000_000 // 65_536


def test_a_reader_takes_a_device_that_no_loop_can_watch(run: Run) -> None:
    with Path(os.devnull).open("rb") as nothing:
        assert run(read_all(Reader(nothing.fileno()))) == b""


def test_a_sender_that_resets_its_connection_has_ended_its_stream(run: Run) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours:
            ours.send(b"never read")
            theirs.close()
            assert await Reader(ours.fileno()).read() == b""

    run(main())


def test_a_stopped_reader_ends_at_once_and_leaves_the_rest_unread(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        reader = Reader(reading)
        waiting = asyncio.create_task(reader.read())
        await turns(5)
        reader.stop()
        assert await waiting == b""
        os.write(writing, b"still there")
        assert await reader.read() == b""
        reader.stop()
        assert os.read(reading, 100) == b"still there"

    run(main())


def test_a_reader_that_is_stopped_when_bytes_have_just_come_leaves_them_unread(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        reader = Reader(reading)
        waiting = asyncio.create_task(reader.read())
        await turns(5)
        os.write(writing, b"just come")
        reader.stop()
        assert await waiting == b""
        assert os.read(reading, 100) == b"just come"

    run(main())


def test_a_stopped_reader_of_a_file_reads_no_further(run: Run, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(bytes(100_000))

    async def main() -> None:
        with (tmp_path / "input").open("rb") as file:
            reader = Reader(file.fileno())
            first = await reader.read()
            waiting = asyncio.create_task(reader.read())
            await asyncio.sleep(0)
            reader.stop()
            assert await waiting == b""
            assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == len(first)

    run(main())


# --- writing


@pytest.fixture(params=["as much as fits", "piece by piece"])
def way_of_writing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a system writes without blocking: the second is that of an old kernel, or of a terminal."""
    if request.param == "piece by piece":

        def cannot(*_: object) -> int:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

        monkeypatch.setattr(os, "pwritev", cannot)
    return request.param


@pytest.mark.usefixtures("way_of_writing")
def test_a_writer_writes_all_of_it_for_a_reader_that_is_slow(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing
    sent = pattern(3_000_000)
    received: list[bytes] = []

    def receive() -> None:
        size = 1
        while chunk := os.read(reading, size):
            received.append(chunk)
            size = size * 3 % 8191

    async def main() -> None:
        writing_all = asyncio.create_task(Writer(writing).write(sent))
        await turns(200)
        assert not writing_all.done()  # nobody reads yet, and the loop turns all the same
        thread = threading.Thread(target=receive)
        thread.start()
        await writing_all
        ends.close(writing)
        await asyncio.to_thread(thread.join)

    run(main())
    assert b"".join(received) == sent


def test_a_large_message_takes_a_few_turns_of_the_loop(run: Run) -> None:
    if not hasattr(os, "RWF_NOWAIT"):
        pytest.skip("this system writes to a pipe in small pieces only")
    ends = Ends(*os.pipe())
    sent = b"a message without a line end" * 36_000
    taken: list[bytes] = []

    async def main() -> None:
        reader, writer = Reader(ends.reading), Writer(ends.writing)
        writing = asyncio.create_task(writer.write(sent))
        while sum(map(len, taken)) < len(sent):
            taken.append(await reader.read())
        await writing

    run(main())
    ends.close_all()
    assert b"".join(taken) == sent
    assert len(taken) <= 4  # a pipe as it comes would take 16


def test_a_pipe_is_widened_once_however_many_large_messages_come(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    widened: list[int] = []
    monkeypatch.setattr(stdio, "_widen", widened.append)
    incoming, outgoing = os.pipe()

    async def exchange() -> None:
        reader, writer = Reader(incoming), Writer(outgoing)
        for _ in range(3):
            message = pattern(1 << 20).replace(b"\n", b" ") + b"\n"
            writing = asyncio.create_task(writer.write(message))
            taken = b""
            while not taken.endswith(b"\n"):
                taken += await reader.read()
            assert taken == message
            await writing
        reader.close()
        writer.close()

    run(exchange())
    os.close(incoming)
    os.close(outgoing)
    assert sorted(widened) == sorted((incoming, outgoing))


@pytest.mark.usefixtures("way_of_writing")
def test_one_write_after_the_other_arrives_in_order(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing
    pieces = [b"%d:" % at + bytes([at % 251]) * (at * 97 % 9000) for at in range(200)]

    async def main() -> bytes:
        receiving = asyncio.create_task(read_all(Reader(reading)))
        writer = Writer(writing)
        for piece in pieces:
            await writer.write(piece)
        ends.close(writing)
        return await receiving

    assert run(main()) == b"".join(pieces)


@pytest.mark.usefixtures("way_of_writing")
def test_pieces_of_any_size_are_written_whole_and_in_order(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing
    sizes = [0, 60, 1_700_000, 0, 20, 70_000, 1, *[3] * 3000, 0, 4096, 4097, 200_000, 0]
    pieces = [bytes([at % 251]) * size for at, size in enumerate(sizes)]

    async def main() -> bytes:
        writer = Writer(writing)
        sending = asyncio.create_task(writer.write(*pieces))
        await turns(20)
        assert not sending.done()  # nobody reads yet
        receiving = asyncio.create_task(read_all(Reader(reading)))
        await sending
        ends.close(writing)
        return await receiving

    assert run(main()) == b"".join(pieces)


@pytest.mark.usefixtures("way_of_writing")
def test_a_writer_says_when_nobody_reads_any_more(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        writer = Writer(writing)
        await writer.write(b"read by nobody")
        ends.close(reading)
        for _ in range(2):
            with pytest.raises(BrokenPipeError):
                await writer.write(b"x")
        await writer.write(b"")

    run(main())


@pytest.mark.usefixtures("way_of_writing")
def test_a_writer_that_waits_is_told_when_its_reader_goes(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        waiting = asyncio.create_task(Writer(writing).write(bytes(5_000_000)))
        await turns(200)
        assert not waiting.done()
        ends.close(reading)
        with pytest.raises(BrokenPipeError):
            await waiting

    run(main())


class Client:
    """Takes the place of the wait for room: a client that reads meanwhile, for as many waits as it likes."""

    def __init__(self, ends: Ends, reads: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.received = b""
        self.waits = 0
        self.now = 0.0
        self._ends, self._reads = ends, reads
        os.set_blocking(ends.reading, False)
        monkeypatch.setattr(stdio.select, "select", self._wait)
        monkeypatch.setattr(stdio, "monotonic", lambda: self.now)

    def _wait(self, *asked: Any) -> tuple[list[int], list[int], list[int]]:
        assert asked == ((), (self._ends.writing,), (), stdio._PAUSE_S)
        self.waits += 1
        self.now += stdio._PAUSE_S / 2
        if self.waits > self._reads:
            return [], [], []
        self.read()
        return [], [self._ends.writing], []

    def read(self) -> None:
        with suppress(BlockingIOError):
            self.received += os.read(self._ends.reading, 1 << 18)


@pytest.mark.usefixtures("way_of_writing")
def test_a_client_that_reads_without_a_pause_is_written_to_in_turns_of_two_milliseconds(
    run: Run, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, sent = Client(ends, 1_000, monkeypatch), pattern(9_000_000)
    waits: list[int] = []

    async def main() -> None:
        under_way = asyncio.create_task(Writer(ends.writing).write(sent))
        while not under_way.done():
            waits.append(client.waits)
            await asyncio.sleep(0)
            client.read()
        await under_way
        while len(client.received) < len(sent):
            client.read()

    run(main())
    assert client.received == sent
    in_a_turn = [after - before for before, after in pairwise(waits)]
    most = stdio._TURN_S / (stdio._PAUSE_S / 2)
    assert most / 2 < max(in_a_turn) <= most + 1  # then others have their turn


@pytest.mark.usefixtures("way_of_writing")
def test_a_client_that_pauses_once_is_not_waited_for_in_place(
    run: Run, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, sent = Client(ends, 2, monkeypatch), pattern(5_000_000)

    async def main() -> None:
        for writes in (1, 2):  # the next write tries again
            under_way = asyncio.create_task(Writer(ends.writing).write(sent))
            while not under_way.done():
                await turns(20)
                client.read()
            await under_way
            while len(client.received) < writes * len(sent):
                client.read()
            assert client.waits == 3 if writes == 1 else 4

    run(main())
    assert client.received == sent * 2


class Timers:
    """Takes the place of a loop's `call_later`: keeps what is to be called."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.waiting: list[Any] = []
        loop.call_later = self._call_later  # type: ignore[method-assign]

    def _call_later(self, delay: float, callback: Callable[..., object], *given: object) -> Timers.Handle:
        assert delay == stdio._PATIENCE_S
        self.waiting.append([callback, given, object()])  # equal to no other
        return Timers.Handle(self.waiting, self.waiting[-1])

    class Handle:
        def __init__(self, waiting: list[Any], own: Any) -> None:
            self._waiting, self._own = waiting, own

        def cancel(self) -> None:
            self._waiting[:] = [each for each in self._waiting if each is not self._own]


@pytest.mark.usefixtures("way_of_writing")
def test_a_writer_that_is_to_end_waits_as_long_as_its_client_reads(ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        timers, writer, sent = Timers(asyncio.get_running_loop()), Writer(writing), pattern(5_000_000)
        under_way = asyncio.create_task(writer.write(sent))
        await turns(200)
        assert timers.waiting == []
        writer.hurry()
        (first,) = timers.waiting
        for _ in range(3):  # connections that others wait for are asked to end again and again
            writer.hurry()
            await turns(5)
        assert timers.waiting == [first]
        read = b""
        while timers.waiting == [first]:  # a socket tells of room once there is much
            read += os.read(reading, 1 << 16)
            await turns(20)
        assert len(timers.waiting) == 1
        while not under_way.done():
            read += os.read(reading, 1 << 16)
            await turns(5)
        while len(read) < len(sent):
            read += os.read(reading, 1 << 16)
        assert read == sent
        assert timers.waiting == []  # none that would end the next write

    asyncio.run(main())


@pytest.mark.usefixtures("way_of_writing")
def test_a_writer_that_is_to_end_gives_up_a_client_that_reads_nothing(ends: Ends) -> None:
    async def main() -> None:
        timers, writer = Timers(asyncio.get_running_loop()), Writer(ends.writing)
        writer.hurry()
        under_way = asyncio.create_task(writer.write(bytes(5_000_000)))
        await turns(200)
        ((give_up, given, _),) = timers.waiting
        give_up(*given)
        with pytest.raises(stdio.ClientDoesNotRead):
            await under_way

    asyncio.run(main())


def test_what_goes_wrong_while_a_client_is_waited_for_ends_the_write(
    run: Run, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        writer = Writer(ends.writing)
        under_way = asyncio.create_task(writer.write(bytes(5_000_000)))
        await turns(200)
        monkeypatch.setattr(writer, "_write_some", lambda _: 1 // 0)
        os.read(ends.reading, 1 << 20)
        with pytest.raises(ZeroDivisionError):
            await under_way

    run(main())


def test_a_writer_calls_a_reset_connection_by_the_same_name(run: Run) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            ours = socket.create_connection(server.getsockname())
            theirs, _ = server.accept()
        with ours:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            theirs.close()  # with a reset, not an orderly end
            with pytest.raises(BrokenPipeError):
                await Writer(ours.fileno()).write(b"x")

    run(main())


@pytest.mark.parametrize("device", [False, True], ids=["a regular file", "a device"])
def test_a_writer_takes_what_is_always_ready(run: Run, tmp_path: Path, device: bool) -> None:
    target = Path(os.devnull) if device else tmp_path / "output"
    sent = pattern(200_000)
    with target.open("wb") as file:
        run(Writer(file.fileno()).write(sent))
    assert target.read_bytes() == (b"" if device else sent)


# --- both


def test_what_is_cancelled_is_no_longer_watched(run: Run, ends: Ends) -> None:
    reading, writing = ends.reading, ends.writing

    async def main() -> None:
        loop = asyncio.get_running_loop()
        reader, writer = Reader(reading), Writer(writing)
        waiting = [asyncio.create_task(reader.read())]
        await turns(5)
        for task in waiting:
            task.cancel()
        waiting.append(asyncio.create_task(writer.write(bytes(5_000_000))))
        await turns(200)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert [task.cancelled() for task in waiting] == [True, True]
        for watch in (reader._watch, writer._watch):
            assert watch is not None
            assert not loop.remove_reader(watch.fileno())

    run(main())


def test_no_descriptor_is_made_non_blocking(run: Run, ends: Ends) -> None:
    # The flag would be shared with whoever else has the other end open, a shell for example.
    reading, writing = ends.reading, ends.writing
    seen: list[bool] = []

    def look() -> None:
        seen.extend((os.get_blocking(reading), os.get_blocking(writing)))

    async def main() -> None:
        task = asyncio.create_task(Writer(writing).write(bytes(1_000_000)))
        await turns(200)
        look()
        reader = Reader(reading)
        received = 0
        while received < 1_000_000:
            received += len(await reader.read())
        await task
        look()

    run(main())
    assert seen == [True] * 4


CLAIMING = """
import os, subprocess, sys
from portbook.doors.stdio import claim_standard_streams
print("before")
streams = claim_standard_streams()
print("printed")
sys.stdout.flush()
os.write(1, b"written to 1\\n")
subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
os.write(streams.outgoing, b"frame:" + os.read(streams.incoming, 100))
assert sys.stdin.read() == ""
inherited = subprocess.run([sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"], check=True)
assert not os.get_inheritable(streams.incoming) and not os.get_inheritable(streams.outgoing)
"""


def test_claimed_streams_carry_frames_alone_and_what_is_printed_goes_to_standard_error() -> None:
    done = subprocess.run([sys.executable, "-c", CLAIMING], input=b"for us", capture_output=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"before\nframe:for us"
    assert done.stderr.split() == b"printed written to 1 from a child 0".split()


def test_a_reader_that_was_stopped_leaves_its_number_to_the_next(run: Run) -> None:
    async def once() -> int:
        reading, writing = os.pipe()
        reader = Reader(reading)
        coming = asyncio.create_task(reader.read())
        await turns(3)
        os.write(writing, b"some")
        assert await asyncio.wait_for(coming, 20) == b"some"
        reader.stop()
        os.close(reading)
        os.close(writing)
        return reading

    async def main() -> None:
        assert await once() == await once()

    run(main())
