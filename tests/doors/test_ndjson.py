"""The NDJSON door: in order, one at a time, and nothing held back while somebody waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from portbook.app.assemble import assemble
from portbook.audit.memory_sink import MemorySink
from portbook.boundary import Boundary
from portbook.doors.ndjson import NdjsonDoor
from portbook.doors.stdio import ClientDoesNotRead, Reader, Writer
from portbook.mcp.messages_from_client import Key, Order, Work
from portbook.model import Answer, Arrival
from portbook.settings import load_settings
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame
from support.portbook_process import invoke

pytestmark = pytest.mark.timeout(
    60
)  # an answer that is held back hangs its test; that is a failure, not a wait

ARRIVAL = Arrival("stdio", "stdio", key="a key")


class Unrecorded(contextlib.nullcontext[None]):
    """In place of what writes records."""

    tick = staticmethod(time.perf_counter)


class Scripted:
    """A boundary that does what the frame says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.arrivals: list[Arrival] = []
        self.waiting: dict[str, asyncio.Future[str]] = {}
        self.recorder = Unrecorded()

    def connect(
        self,
        arrival: Arrival,
        emit: Callable[[bytes, Callable[[], bool]], None],
        *,
        cancel: Callable[[Key], bool],
    ) -> Scripted:
        self.arrivals.append(arrival)
        self.emit = emit
        self.cancel = cancel
        return self

    def close(self) -> None:
        pass

    def receive(self, frame: Frame) -> Work:
        """Frames that begin with `free` may run at once, each under its name; `cancel <name>` cancels one."""
        name = "" if frame is OVERSIZE else frame.decode()
        if name.startswith("free"):
            return Work(self.answer(frame), Order.AT_ONCE, (str, name))
        return Work(self.answer(frame))

    async def answer(self, frame: Frame) -> Answer:
        if frame is OVERSIZE:
            return Answer(b"<too long>", 413)
        name = frame.decode()
        verb = name.split()[0]
        self.log.append(f"+{name}")
        try:
            if verb in ("wait", "free"):
                await self.gate(name)
            elif verb == "twice":
                await self.gate(name)
                await asyncio.sleep(0)
                await self.gate(name)
            elif verb == "turn":
                await asyncio.sleep(0)
            elif verb == "fail":
                with contextlib.suppress(ValueError):
                    await self.gate(name)
                    return Answer(b"<it did not fail>", 200)
            elif verb == "big":
                return Answer(b"<" + name.encode() * 3000 + b">", 200)
        finally:
            self.log.append(f"-{name}")
        if verb == "note":
            return Answer(b"<never to be sent>", 200, is_notification=True)
        if verb == "cancel":
            self.cancel((str, name.partition(" ")[2]))
        if verb in ("mute", "cancel"):
            return Answer(None, 202, is_notification=True)
        return Answer(b"<" + frame + b">", 200)

    async def gate(self, name: str) -> None:
        self.waiting[name] = asyncio.get_running_loop().create_future()
        await self.waiting[name]

    async def waits(self, name: str) -> asyncio.Future[str]:
        """Wait until a call waits, and return what it waits for."""
        while (gate := self.waiting.get(name)) is None or gate.done():
            await asyncio.sleep(0)
        return gate


class Ends:
    """Both sides of the two streams of a door: ours to write calls and read answers, its to serve."""

    def __init__(self, kind: str) -> None:
        if kind == "pipes":
            self.incoming, self.calls = os.pipe()
            self.answers, self.outgoing = os.pipe()
        else:
            self.incoming, self.calls = (end.detach() for end in socket.socketpair())
            self.answers, self.outgoing = (end.detach() for end in socket.socketpair())
        self._open = {self.incoming, self.calls, self.answers, self.outgoing}
        self.received = b""

    def send(self, data: bytes) -> None:
        os.write(self.calls, data)

    def fill(self) -> None:
        """Fill the stream of answers as far as it goes."""
        os.set_blocking(self.outgoing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(self.outgoing, b"." * 65_536)
        os.set_blocking(self.outgoing, True)

    def close(self, end: int) -> None:
        """Close one end, once: its number may be somebody else's by then."""
        if end in self._open:
            self._open.remove(end)
            os.close(end)

    def end(self) -> None:
        self.close(self.calls)

    async def receive(self, expected: bytes) -> None:
        """Read answers until there are as many bytes as expected, which must be those."""
        reader = Reader(self.answers)
        start = len(self.received)
        while len(self.received) - start < len(expected):
            chunk = await reader.read()
            assert chunk, "the answers ended too early"
            self.received += chunk
        assert self.received[start:] == expected

    def rest(self) -> bytes:
        """Return what else was answered; the door is done."""
        self.close(self.outgoing)
        return b"".join(iter(lambda: os.read(self.answers, 65_536), b""))

    def close_all(self) -> None:
        for end in list(self._open):
            self.close(end)


@pytest.fixture(params=["pipes", "socketpairs"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    made = Ends(request.param)
    yield made
    made.close_all()


def open_door(
    boundary: Scripted | Boundary,
    ends: Ends,
    *,
    reader: Reader | None = None,
    writer: Writer | None = None,
) -> NdjsonDoor:
    return NdjsonDoor(
        cast("Boundary", boundary),
        reader or Reader(ends.incoming),
        writer or Writer(ends.outgoing),
        ARRIVAL,
    )


@contextlib.asynccontextmanager
async def serving(boundary: Scripted | Boundary, ends: Ends) -> AsyncIterator[NdjsonDoor]:
    """Serve while the body runs; then end the input, and wait for the door to be done."""
    door = open_door(boundary, ends)
    task = asyncio.create_task(door.serve())
    yield door
    ends.end()
    await task


def serve_all(boundary: Scripted, ends: Ends, stream: bytes) -> bytes:
    """Serve a short stream from its beginning to its end, and return the answers."""
    ends.send(stream)
    ends.end()
    serve_to_the_end(boundary, ends)
    return ends.rest()


def serve_to_the_end(boundary: Scripted, ends: Ends) -> None:
    async def main() -> None:
        await open_door(boundary, ends).serve()

    asyncio.run(main())


def case(name: str, stream: bytes, answers: bytes) -> Any:
    return pytest.param(stream, answers, id=name)


@pytest.mark.parametrize(
    ("stream", "answers"),
    [
        case("nothing", b"", b""),
        case("one call", b"a\n", b"<a>\n"),
        case("calls in order", b"a\nb\nc\n", b"<a>\n<b>\n<c>\n"),
        case(
            "calls that wait keep their place",
            b"a\nturn 1\nb\nturn 2\nc\n",
            b"<a>\n<turn 1>\n<b>\n<turn 2>\n<c>\n",
        ),
        case("an unterminated last line is a call", b"a\nb", b"<a>\n<b>\n"),
        case("an unterminated last line that waits", b"a\nturn", b"<a>\n<turn>\n"),
        case("a notification is not answered", b"a\nnote 1\nb\nnote 2\n", b"<a>\n<b>\n"),
        case("an answer without a body is not written", b"mute\na\nmute\n", b"<a>\n"),
        case("blank lines are nothing", b"\n  \n\r\na\n\t\n", b"<a>\n"),
        case("only LF ends a line", b"a\rb\x0bc\n", b"<a\rb\x0bc>\n"),
    ],
)
def test_each_line_is_answered_in_a_line_in_order(ends: Ends, stream: bytes, answers: bytes) -> None:
    boundary = Scripted()
    assert serve_all(boundary, ends, stream) == answers
    assert boundary.arrivals == [ARRIVAL]


def test_calls_run_strictly_one_at_a_time(ends: Ends) -> None:
    boundary = Scripted()
    serve_all(boundary, ends, b"a\nturn 1\nnote\nturn 2\nb")
    assert boundary.log == [
        "+a",
        "-a",
        "+turn 1",
        "-turn 1",
        "+note",
        "-note",
        "+turn 2",
        "-turn 2",
        "+b",
        "-b",
    ]


def test_each_answer_is_written_before_the_next_call_comes(ends: Ends) -> None:
    async def main() -> None:
        async with serving(Scripted(), ends):
            for name in (b"a", b"turn", b"b"):
                ends.send(name + b"\n")
                await ends.receive(b"<" + name + b">\n")
            ends.send(b"half a ")
            ends.send(b"line\n")
            await ends.receive(b"<half a line>\n")

    asyncio.run(main())


def test_a_large_answer_has_its_line_end_and_the_next_one_its_own_line(ends: Ends) -> None:
    part = b"x" * 30_000

    async def main() -> None:
        async with serving(Scripted(), ends):
            for _ in range(3):  # as much as a pipe takes at once
                ends.send(part)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            ends.send(b"\n")
            await ends.receive(b"<" + part * 3 + b">\n")
            ends.send(b"a\n")
            await ends.receive(b"<a>\n")

    asyncio.run(main())


def test_small_messages_share_a_write_where_the_system_may_block(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    boundary, writes = Scripted(), list[int]()
    write = os.write

    def counted(descriptor: int, data: bytes) -> int:
        if descriptor == ends.outgoing:
            writes.append(len(data))
        return write(descriptor, data)

    async def main() -> None:
        async with serving(boundary, ends):
            ends.send(b"a\n")
            await ends.receive(b"<a>\n")
            monkeypatch.setattr(os, "write", counted)
            for number in range(50):
                boundary.emit(b"%d" % number, lambda: True)
            await ends.receive(b"".join(b"%d\n" % number for number in range(50)))

    monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    asyncio.run(main())
    assert len(writes) == 1


def test_answers_before_a_call_that_waits_are_written_before_it_ends(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends):
            ends.send(b"a\nb\nwait 1\nc\nwait 2\n")
            await ends.receive(b"<a>\n<b>\n")
            assert boundary.log[-1] == "+wait 1"
            (await boundary.waits("wait 1")).set_result("")
            await ends.receive(b"<wait 1>\n<c>\n")
            assert boundary.log[-1] == "+wait 2"
            (await boundary.waits("wait 2")).set_result("")
            await ends.receive(b"<wait 2>\n")

    asyncio.run(main())


def test_a_call_may_wait_more_than_once_and_for_what_fails(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends):
            ends.send(b"twice\nfail\na\n")
            (await boundary.waits("twice")).set_result("")
            (await boundary.waits("twice")).set_result("")
            await ends.receive(b"<twice>\n")
            (await boundary.waits("fail")).set_exception(ValueError())
            await ends.receive(b"<fail>\n<a>\n")

    asyncio.run(main())


def test_a_line_too_long_is_answered_and_the_next_is_served(ends: Ends) -> None:
    stream = b"a\n" + b"x" * 3_000_000 + b"\nb\n"

    def send() -> None:
        view = memoryview(stream)
        while view:
            view = view[os.write(ends.calls, view) :]
        ends.end()

    sender = threading.Thread(target=send)
    sender.start()
    serve_to_the_end(Scripted(), ends)
    sender.join()
    assert ends.rest() == b"<a>\n<too long>\n<b>\n"


class Counting:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    async def write(self, *pieces: bytes) -> None:
        self.writes.append(b"".join(pieces))

    def write_now(self, data: bytes) -> bytes:
        self.writes.append(data)
        return b""


def test_slow_calls_do_not_hold_back_the_first_answer(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Counting()
    monkeypatch.setattr("portbook.doors.ndjson._BATCH_S", -1.0)  # every call takes longer than a batch may
    ends.send(b"a\nb\nc\n")
    ends.end()
    asyncio.run(open_door_and_serve(ends, writer))
    assert writer.writes == [b"<a>\n", b"<b>\n", b"<c>\n"]


async def open_door_and_serve(ends: Ends, writer: Counting) -> None:
    await open_door(Scripted(), ends, writer=cast("Writer", writer)).serve()


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches end by their number of messages alone: a busy machine makes no other ones."""
    monkeypatch.setattr("portbook.doors.ndjson._BATCH_S", 60.0)


@pytest.mark.usefixtures("unhurried")
def test_answers_are_written_together_but_not_without_end(ends: Ends) -> None:
    writer = Counting()
    few = [b"%d" % at for at in range(64)]
    many = [b"%d" % at for at in range(200)]
    ends.send(b"".join(name + b"\n" for name in few))

    async def main() -> None:
        door = open_door(Scripted(), ends, writer=cast("Writer", writer))
        task = asyncio.create_task(door.serve())
        while not writer.writes:
            await asyncio.sleep(0)
        assert writer.writes == [b"".join(b"<" + name + b">\n" for name in few)]
        ends.send(b"".join(name + b"\n" for name in many))
        ends.end()
        await task

    asyncio.run(main())
    assert b"".join(writer.writes[1:]) == b"".join(b"<" + name + b">\n" for name in many)
    assert 200 / 64 < len(writer.writes[1:]) < len(many)
    assert max(write.count(b"\n") for write in writer.writes) == 64


def test_a_slow_reader_loses_nothing_and_gets_it_in_order(ends: Ends) -> None:
    names = [b"big %d" % at if at % 3 else b"turn %d" % at for at in range(150)]
    received: list[bytes] = []

    def receive() -> None:
        size = 1
        while chunk := os.read(ends.answers, size):
            received.append(chunk)
            size = size * 3 % 8191

    async def main() -> None:
        async with serving(Scripted(), ends):
            ends.send(b"".join(name + b"\n" for name in names))
            for _ in range(500):  # far more than fits is written by now, and nobody has read any of it
                await asyncio.sleep(0)
            reader.start()
        ends.close(ends.outgoing)
        await asyncio.to_thread(reader.join)

    reader = threading.Thread(target=receive)
    asyncio.run(main())
    assert b"".join(received) == b"".join(
        b"<" + (name * 3000 if name.startswith(b"big") else name) + b">\n" for name in names
    )


def test_a_regular_file_is_served_like_a_stream(ends: Ends, tmp_path: Path) -> None:
    names = [b"turn %d" % at if at % 100 == 0 else b"%d" % at for at in range(20_000)]
    (tmp_path / "calls").write_bytes(b"\n".join(names))
    received: list[bytes] = []
    receiving = threading.Thread(
        target=lambda: received.extend(iter(lambda: os.read(ends.answers, 65_536), b""))
    )
    receiving.start()

    async def main() -> None:
        await open_door(Scripted(), ends, reader=Reader(file.fileno())).serve()

    with (tmp_path / "calls").open("rb") as file:
        asyncio.run(main())
    ends.close(ends.outgoing)
    receiving.join()
    assert b"".join(received) == b"".join(b"<" + name + b">\n" for name in names)


# --- calls that may run at once


def test_calls_that_may_run_at_once_are_answered_when_they_end(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends):
            ends.send(b"free 1\nfree 2\na\nfree 3\n")
            await ends.receive(b"<a>\n")
            assert boundary.log == ["+free 1", "+free 2", "+a", "-a", "+free 3"]
            for name in ("free 3", "free 1"):
                (await boundary.waits(name)).set_result("")
                await ends.receive(f"<{name}>\n".encode())
            ends.end()  # what is under way is finished, though nothing more can come
            (await boundary.waits("free 2")).set_result("")
        assert ends.rest() == b"<free 2>\n"

    asyncio.run(main())


def test_calls_that_end_together_are_answered_in_one_write(ends: Ends) -> None:
    boundary, writer = Scripted(), Counting()
    ends.send(b"free 1\nfree 2\nfree 3\n")

    async def main() -> None:
        door = open_door(boundary, ends, writer=cast("Writer", writer))
        task = asyncio.create_task(door.serve())
        gates = [await boundary.waits(f"free {number}") for number in (1, 2, 3)]
        for gate in gates:
            gate.set_result("")
        ends.end()
        await task

    asyncio.run(main())
    assert writer.writes == [b"<free 1>\n<free 2>\n<free 3>\n"]


def test_stopping_finishes_every_call_that_runs_at_once(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends) as door:
            ends.send(b"free 1\nfree 2\n")
            gates = [await boundary.waits("free 1"), await boundary.waits("free 2")]
            door.stop()
            ends.send(b"a\n")
            for gate in gates:
                gate.set_result("")

    asyncio.run(main())
    assert sorted(ends.rest().split()) == [b"1>", b"2>", b"<free", b"<free"]
    assert "+a" not in boundary.log


@pytest.mark.parametrize("is_one_chunk", [False, True], ids=["later", "in the same breath"])
def test_a_call_that_its_sender_cancels_ends_and_is_not_answered(ends: Ends, is_one_chunk: bool) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends):
            if is_one_chunk:
                ends.send(b"free 1\nfree 2\ncancel free 1\na\n")
            else:
                ends.send(b"free 1\nfree 2\n")
                await boundary.waits("free 2")
                ends.send(b"cancel free 1\ncancel nothing\na\n")
            await ends.receive(b"<a>\n")
            (await boundary.waits("free 2")).set_result("")
            await ends.receive(b"<free 2>\n")

    asyncio.run(main())
    assert ends.rest() == b""
    assert "-free 1" in boundary.log


@pytest.mark.parametrize("before", [b"", b"turn\n"], ids=["first", "behind a call that waits"])
def test_a_cancelled_call_has_ended_before_the_next_one_runs(ends: Ends, before: bytes) -> None:
    boundary = Scripted()
    serve_all(boundary, ends, before + b"free 1\ncancel free 1\nb\n")
    assert boundary.log.index("-free 1") < boundary.log.index("+b")


class Meddling(Scripted):
    """A boundary in which something happens right after the first step of a call that waits."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self._meddle = meddle

    def adopt(self, _: object) -> None:
        pass

    async def gate(self, name: str) -> None:
        asyncio.get_running_loop().call_soon(self._meddle)
        await super().gate(name)


def test_a_call_in_turn_is_under_way_from_its_first_step_on(ends: Ends) -> None:
    moved: list[asyncio.Task[None]] = []

    async def main() -> None:
        boundary = Meddling(
            lambda: moved.append(asyncio.create_task(door.move_to(cast("Boundary", boundary))))
        )
        async with serving(boundary, ends) as door:
            ends.send(b"wait 1\n")
            gate = await boundary.waits("wait 1")
            for _ in range(20):
                await asyncio.sleep(0)
            assert [each.done() for each in moved] == [False]
            gate.set_result("")
            await moved[0]
            await ends.receive(b"<wait 1>\n")

    asyncio.run(main())


def test_a_door_that_is_cancelled_before_its_task_went_on_ends_the_call_in_turn(ends: Ends) -> None:
    async def main() -> list[str]:
        def meddle() -> None:
            task.cancel()

        boundary = Meddling(meddle)
        task = asyncio.create_task(open_door(boundary, ends).serve())
        ends.send(b"wait 1\n")
        with pytest.raises(asyncio.CancelledError):
            await task
        return boundary.log

    assert asyncio.run(main()) == ["+wait 1", "-wait 1"]


def test_a_bug_that_is_no_exception_ends_the_door_instead_of_losing_frames(ends: Ends) -> None:
    class Odd(BaseException):
        """What only a bug of ours can raise here."""

    class Failing(Scripted):
        def receive(self, frame: Frame) -> Work:
            if frame == b"odd":
                raise Odd
            return super().receive(frame)

    async def main() -> list[object]:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told_of: told.append(told_of["exception"]))
        task = asyncio.create_task(open_door(Failing(), ends).serve())
        ends.send(b"a\nodd\nb\n")
        with pytest.raises(asyncio.CancelledError):
            await task
        return told

    assert [type(each) for each in asyncio.run(main())] == [Odd]


def test_an_idle_door_keeps_nothing_of_a_message_that_waited(ends: Ends) -> None:
    boundary, size = Scripted(), 1_000_000

    def exchange() -> None:
        left = memoryview(b"wait " + b"x" * size + b"\n")
        while left:
            left = left[os.write(ends.calls, left) :]
        count = 0
        while count < size:
            count += len(os.read(ends.answers, 1 << 20))

    async def main() -> int:
        async with serving(boundary, ends):
            tracemalloc.start()
            try:
                client = asyncio.create_task(asyncio.to_thread(exchange))
                while not boundary.waiting:
                    await asyncio.sleep(0)
                boundary.waiting.popitem()[1].set_result("")
                await client
                boundary.log.clear()
                return tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()

    assert asyncio.run(main()) < size


def test_a_message_of_our_own_is_written_before_the_answer_that_comes_after_it(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends):
            ends.send(b"free 1\n")
            gate = await boundary.waits("free 1")
            boundary.emit(b"progress 1", lambda: True)
            await ends.receive(b"progress 1\n")
            await asyncio.to_thread(boundary.emit, b"progress 2", lambda: True)
            boundary.emit(b"too late", lambda: False)
            gate.set_result("")
            await ends.receive(b"progress 2\n<free 1>\n")

    asyncio.run(main())


class Held(Writer):
    """A writer that takes the first write, and holds everything up until somebody reads."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_read = asyncio.Event()

    async def write(self, *pieces: bytes) -> None:
        self.written.append(b"".join(pieces))
        await self.is_read.wait()


async def served_late(ends: Ends, say: Callable[[Scripted], None]) -> bytes:
    """Say things behind a write that nobody reads; return what is written once somebody does."""
    boundary, writer = Scripted(), Held()
    task = asyncio.create_task(open_door(boundary, ends, writer=writer).serve())
    await asyncio.sleep(0)
    boundary.emit(b"first", lambda: True)
    while not writer.written:
        await asyncio.sleep(0)
    say(boundary)
    writer.is_read.set()
    ends.end()
    await task
    return b"".join(writer.written[1:])


def test_a_door_that_is_cancelled_leaves_no_write_behind(ends: Ends) -> None:
    async def main() -> None:
        boundary, writer = Scripted(), Held()
        task = asyncio.create_task(open_door(boundary, ends, writer=writer).serve())
        ends.send(b"free 1\n")
        (await boundary.waits("free 1")).set_result("")
        while not writer.written:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.parametrize("is_written", [True, False], ids=["while it writes", "before it writes"])
def test_a_door_that_is_stopped_gives_up_a_client_that_reads_nothing(
    ends: Ends, is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.doors.stdio._PATIENCE_S", 0.05)

    async def main() -> None:
        boundary = Scripted()
        door = open_door(boundary, ends)
        task = asyncio.create_task(door.serve())
        ends.send(b"wait 1\n" + b"".join(b"big %d\n" % at for at in range(200)))
        gate = await boundary.waits("wait 1")
        if is_written:
            gate.set_result("")
            while not any(name.startswith("-big") for name in boundary.log):
                await asyncio.sleep(0)
        else:
            ends.fill()
        door.stop()
        gate.done() or gate.set_result("")
        with pytest.raises(ClientDoesNotRead):
            await task

    asyncio.run(main())


def test_what_nobody_reads_is_said_once(ends: Ends) -> None:
    def say(boundary: Scripted) -> None:
        for name in (b"a changed", b"b changed") * 1000:
            boundary.emit(name, lambda: True)

    assert asyncio.run(served_late(ends, say)) == b"a changed\nb changed\n"


def test_what_nobody_reads_takes_a_limited_place_and_what_is_vital_has_one(ends: Ends) -> None:
    def say(boundary: Scripted) -> None:
        for number in range(100_000):
            boundary.emit(b"%d changed" % number, lambda: True)
        cast("Any", boundary.emit)(b"vital", lambda: True, is_vital=True)

    written = asyncio.run(served_late(ends, say))
    assert len(written) < 66_000
    assert written.startswith(b"0 changed\n1 changed\n")
    assert written.endswith(b"\nvital\n")


def test_what_is_read_in_time_is_said_as_often_as_it_was(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends):
            await asyncio.sleep(0)
            for _ in range(3):
                boundary.emit(b"same", lambda: True)
            await ends.receive(b"same\nsame\nsame\n")

    asyncio.run(main())


# --- stopping


def test_stopping_finishes_the_call_in_flight_and_never_starts_the_next(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        async with serving(boundary, ends) as door:
            ends.send(b"a\nwait\nb\nturn\nc")
            gate = await boundary.waits("wait")
            door.stop()
            await asyncio.sleep(0)
            assert boundary.log[-1] == "+wait"
            gate.set_result("")

    asyncio.run(main())
    assert ends.rest() == b"<a>\n<wait>\n"
    assert boundary.log == ["+a", "-a", "+wait", "-wait"]


def test_stopping_an_idle_door_ends_it_and_half_a_line_never_runs(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        door = open_door(boundary, ends)
        task = asyncio.create_task(door.serve())
        ends.send(b"a\nhalf a line")
        await ends.receive(b"<a>\n")
        door.stop()
        await task  # though the input has not ended

    asyncio.run(main())
    assert boundary.log == ["+a", "-a"]
    assert ends.rest() == b""


def test_a_door_that_was_stopped_before_it_served_serves_nothing(ends: Ends) -> None:
    boundary = Scripted()

    async def main() -> None:
        door = open_door(boundary, ends)
        ends.send(b"a\n")
        door.stop()
        await door.serve()

    asyncio.run(main())
    assert boundary.log == []


# --- nobody reads any more


@pytest.mark.parametrize(
    "frame", [b"a\n", b"turn\n", b"a\nturn\n", b"a"], ids=["quick", "waits", "both", "last"]
)
def test_a_door_whose_answers_nobody_reads_says_so(ends: Ends, frame: bytes) -> None:
    ends.close(ends.answers)
    with pytest.raises(BrokenPipeError):
        serve_all(Scripted(), ends, frame)


def test_calls_that_run_at_once_are_ended_when_nobody_reads(ends: Ends) -> None:
    boundary = Scripted()
    ends.close(ends.answers)
    ends.send(b"free 1\na\nfree 2\n")
    with pytest.raises(BrokenPipeError):
        serve_to_the_end(boundary, ends)
    assert sorted(boundary.log) == ["+a", "+free 1", "+free 2", "-a", "-free 1", "-free 2"]


def test_notifications_are_served_on_when_nobody_reads(ends: Ends) -> None:
    boundary = Scripted()
    ends.close(ends.answers)
    ends.send(b"note 1\nnote 2\n")
    ends.end()
    serve_to_the_end(boundary, ends)
    assert boundary.log == ["+note 1", "-note 1", "+note 2", "-note 2"]


# --- with the real boundary


TOOLS = """
import asyncio
from portbook import Toolset

toolset = Toolset("ndjson")

@toolset.tool(effect="read", inline=True)
def echo(text: str) -> str:
    return text

@toolset.tool(effect="read")
def echo_in_thread(text: str) -> str:
    return text

@toolset.tool(effect="read")
async def echo_later(text: str) -> str:
    await asyncio.sleep(0)
    return text

@toolset.tool(effect="read")
async def forever() -> None:
    await asyncio.Event().wait()
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Boundary, MemorySink]]:
    (tmp_path / "tools_for_ndjson.py").write_text(TOOLS)
    flags = {"docs.enabled": False, "python.toolsets": [str(tmp_path / "tools_for_ndjson.py")]}
    sink = MemorySink()
    assembled = assemble(load_settings(None, {}, flags, tmp_path), is_exposed=False, sink=sink)
    yield assembled.boundary, sink
    asyncio.run(assembled.close())


Served = tuple[Boundary, MemorySink]


def test_every_way_to_run_a_tool_is_answered_in_order_with_its_id(ends: Ends, served: Served) -> None:
    boundary, sink = served
    calls = [
        (tool, f"{tool} {at}")
        for at in range(10)
        for tool in ("echo", "echo_in_thread", "echo_later", "echo")
    ]

    async def main() -> None:
        async with serving(boundary, ends):
            ends.send(b"".join(invoke(tool, {"text": text}, id=text) + b"\n" for tool, text in calls))
            await ends.receive(
                b"".join(
                    b'{"jsonrpc":"2.0","id":"%s","result":"%s"}\n' % ((text.encode(),) * 2)
                    for _, text in calls
                )
            )

    asyncio.run(main())
    assert [record["metadata"]["toolId"] for record in sink.records] == [
        f"mcp.tool:{tool}" for tool, _ in calls
    ]  # type: ignore[index]
    assert {record["transport"] for record in sink.records} == {"stdio"}


def endings(sink: MemorySink) -> list[object]:
    return [record["error"] and record["error"]["reason"] for record in sink.records]  # type: ignore[index,call-overload]


@pytest.mark.usefixtures("unhurried")
def test_a_call_in_flight_is_recorded_when_it_turns_out_that_nobody_reads(ends: Ends, served: Served) -> None:
    boundary, sink = served
    ends.close(ends.answers)
    ends.send(invoke("echo", {"text": "x"}) + b"\n" + invoke("forever", {}) + b"\n")

    async def main() -> None:
        # As long as the exception is held, so are its frames: the record must not wait for that.
        with pytest.raises(BrokenPipeError) as held:
            await open_door(boundary, ends).serve()
        assert endings(sink) == [None, "CANCELLED"]
        del held

    asyncio.run(main())


def test_a_call_in_flight_is_recorded_when_the_door_is_cancelled(ends: Ends, served: Served) -> None:
    boundary, sink = served

    async def main() -> None:
        task = asyncio.create_task(open_door(boundary, ends).serve())
        ends.send(invoke("echo", {"text": "x"}, id=1) + b"\n" + invoke("forever", {}) + b"\n")
        await ends.receive(b'{"jsonrpc":"2.0","id":1,"result":"x"}\n')
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert endings(sink) == [None, "CANCELLED"]


def test_a_notification_runs_and_is_recorded_and_not_answered(ends: Ends, served: Served) -> None:
    boundary, sink = served
    notification = json.loads(invoke("echo", {"text": "x"}))
    del notification["id"]

    async def main() -> None:
        async with serving(boundary, ends):
            ends.send(json.dumps(notification).encode() + b"\n" + invoke("echo", {"text": "y"}, id=2) + b"\n")
            await ends.receive(b'{"jsonrpc":"2.0","id":2,"result":"y"}\n')

    asyncio.run(main())
    assert ends.rest() == b""
    assert len(sink.records) == 2
