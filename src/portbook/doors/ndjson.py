"""The NDJSON door: one message per line in, one answer per line out.

The connection says which messages are answered in turn and which run concurrently. What one read brought is
answered in batches: all their records in one write for each stream, then all their answers in one. A batch is
short, so that many slow calls do not hold back the first answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import islice
from typing import Any, Final, cast

from portbook.boundary import Boundary
from portbook.doors.stdio import Reader, Writer
from portbook.doors.taskless_calls import Remainder, SteppedCall
from portbook.mcp.messages_from_client import Key, Order, Work
from portbook.mcp.report_queue import run_on
from portbook.model import Answer, Arrival, Done
from portbook.stages.state import CallState
from portbook.wire.lines_and_size_limit import Frame, LineSplitter

__all__ = ["NdjsonDoor"]

# What a client that keeps up has not read yet, at most.
_GATHERED_BYTES: Final = 1 << 16

# A batch ends after this many messages or seconds: a write costs as much as a tenth of a call.
_BATCH: Final = 64
_BATCH_S: Final = 0.002

# A call that is cancelled before its first step in a task ends in the second turn of the loop.
_TURNS_TO_END: Final = 4


class NdjsonDoor:
    """Serves one stream of lines."""

    def __init__(self, boundary: Boundary, reader: Reader, writer: Writer, arrival: Arrival) -> None:
        self._recorder = boundary.recorder
        self._connection = boundary.connect(arrival, self._emit, cancel=self._cancel)
        self._reader = reader
        self._splitter = LineSplitter()
        self._outlet = _Outlet(writer)
        self._frames: Iterator[Frame] = iter(())
        """The frames of the last read that are not answered yet."""
        self._left = 0
        """How many they are."""
        self._in_turn: Remainder[Answer] | None = None
        """The rest of a call that is answered before them, until it has ended."""
        self._on_turn_end: list[asyncio.Future[None]] = []
        self._running: dict[SteppedCall[Answer], Key | None] = {}
        self._loop = asyncio.get_running_loop()
        self._answerer: asyncio.Task[None] | None = None
        """What writes the answers of calls that had to wait."""
        self._flusher: asyncio.Task[None] | None = None
        self._broken: BrokenPipeError | None = None
        self._is_stopping = False
        self._cancelled: list[asyncio.Future[None]] = []
        """The ends of calls that were cancelled: the next messages wait for them."""

    async def serve(self) -> None:
        """Answer messages until the stream ends; then finish the calls that are running.

        Raises `BrokenPipeError` where the client has stopped reading.
        """
        try:
            while await self._reader.serve_each(self._serve_at_once):
                await self._serve_rest()
            self._serve_frames(self._splitter.close())
            await self._serve_rest()
            self._connection.close()  # the client can no longer answer requests or cancel calls
            while self._running and self._broken is None:
                await self._one_ended()
            for writing in filter(None, (self._answerer, self._flusher)):
                await writing
            if self._broken is not None:
                raise self._broken
        finally:
            self._drop_turn()  # this task may have been cancelled before it could wait for it
            # Some are left only if the client stopped reading: their records are still written.
            writing = [*filter(None, (self._answerer, self._flusher))]
            ended = [call.ended() for call in self._running]
            for each in (*self._running, *writing):
                each.cancel()
            await asyncio.gather(*ended, *writing, return_exceptions=True)

    def stop(self) -> None:
        """Finish the calls that are running and read no more; messages that have not started never run.

        A client that does not read its answers is given up after some seconds.
        """
        self._is_stopping = True
        self._reader.stop()
        self._outlet.hurry()

    def move_to(self, boundary: Boundary) -> Coroutine[Any, Any, None]:
        """Answer what comes next with `boundary`; return what waits until the calls under way have ended."""
        under_way = [call.ended() for call in self._running]
        if self._in_turn is not None:
            self._on_turn_end.append(self._loop.create_future())
            under_way.append(self._on_turn_end[-1])
        self._recorder = boundary.recorder
        boundary.adopt(self._connection)
        return _all_ended(under_way)

    def _serve_at_once(self, chunk: bytes) -> bool:
        """Answer what one read brought; return whether that is all, or `_serve_rest` has to wait for some."""
        return self._serve_frames(self._splitter.feed(chunk))

    def _serve_frames(self, frames: list[Frame]) -> bool:
        self._frames, self._left = iter(frames), len(frames)
        while self._left and not self._is_stopping:
            self._serve_batch()
            if not self._outlet.flush_now() or self._in_turn is not None or self._cancelled:
                return False
        return True

    async def _serve_rest(self) -> None:
        """Answer what has to be waited for, and everything behind it."""
        while True:
            await self._outlet.flush()
            if self._in_turn is not None:
                self._outlet.put_all((await self._end_turn(self._in_turn),))
                await self._outlet.flush()
            if self._cancelled:
                await self._let_cancelled_end()
            if not self._left or self._is_stopping:
                return
            self._serve_batch()

    async def _end_turn(self, call: Remainder[Answer]) -> Answer:
        """Wait for the call that is answered in turn."""
        try:
            return await call
        finally:
            self._leave_turn()

    def _leave_turn(self) -> None:
        self._in_turn = None
        while self._on_turn_end:
            self._on_turn_end.pop().set_result(None)

    def _drop_turn(self) -> None:
        """End the call that is answered in turn where it waits, so that its record is written in time."""
        if self._in_turn is not None:
            self._in_turn.close()
            self._leave_turn()

    async def _let_cancelled_end(self) -> None:
        """Wait until cancelled calls have ended, before the next one runs; some may ignore it."""
        ends, self._cancelled = self._cancelled, []
        for _ in range(_TURNS_TO_END):
            await asyncio.sleep(0)
            if all(each.done() for each in ends):
                return

    def _serve_batch(self) -> None:
        """Answer the next frames: their records are written at once, and so are their answers.

        The last of them may be answered in turn and have to wait: then its rest is kept.
        """
        answered: list[CallState | Answer] = []
        waiting: Remainder[Answer] | None = None
        tick, receive, taken = self._recorder.tick, self._connection.receive, 0
        until = tick() + _BATCH_S
        with self._recorder:
            for frame in islice(self._frames, _BATCH):
                taken += 1
                received = receive(frame)
                if type(received) is CallState:
                    answered.append(received)
                    if received.ended > until:
                        break
                else:
                    waiting = self._start(cast("Work", received), answered)
                    if waiting is not None or self._is_stopping or self._cancelled or tick() > until:
                        break
        self._left -= taken
        if not self._left:
            self._frames = iter(())  # an idle connection keeps no message
        self._in_turn = waiting
        self._outlet.put_all(answered)  # only now: records come before answers

    def _start(self, work: Work, answered: list[CallState | Answer]) -> Remainder[Answer] | None:
        """Run a message to its first wait: most never wait. Return the rest, if it is answered in turn."""
        try:
            waiting_for = work.answering.send(None)
        except StopIteration as ended:
            answered.append(ended.value)
            return None
        if work.order is Order.IN_TURN:
            return Remainder(work.answering, waiting_for)
        self._running[SteppedCall(work.answering, waiting_for, self._ended)] = work.key
        return None

    def _ended(self, call: SteppedCall[Answer], answer: Answer | None) -> None:
        """Send the answer to a call that had to wait; a client that has cancelled it expects none."""
        del self._running[call]
        if answer is None:
            return
        self._outlet.put_all((answer,))
        if self._answerer is None or self._answerer.done():
            # What ends in the same turn of the loop leaves in the same write.
            self._answerer = self._loop.create_task(self._send_answers())

    async def _send_answers(self) -> None:
        """Write the answers of calls that had to wait."""
        try:
            await self._outlet.flush_all()
        except BrokenPipeError as error:
            self._broken = error
            self.stop()

    async def _one_ended(self) -> None:
        await self._outlet.flush()
        ended = [call.ended() for call in self._running]
        if ended:  # the last one may have ended while its answer was written
            await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)

    def _cancel(self, key: Key) -> bool:
        """Cancel the request with this key; return whether it is running."""
        found = [call for call, its_key in self._running.items() if its_key == key]
        for call in found:
            self._cancelled.append(call.ended())
            call.cancel()
        return bool(found)

    def _emit(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Send a notification or request, from any thread, before any later answer.

        If the client reads too slowly, a message that is not vital is queued once, then dropped: a slow
        client must not fill memory. With `on_room` it is left to the sender until there is room.
        """
        if on_room is not None and not self._outlet.has_room:
            self._outlet.on_room.append(on_room)
            return False
        run_on(self._loop, self._emit_now, message, is_wanted, is_vital)
        return True

    def _emit_now(self, message: bytes, is_wanted: Callable[[], bool], is_vital: bool) -> None:
        if is_wanted() and (is_vital or self._outlet.has_room_for(message)):
            self._outlet.put_now(message)
            if self._flusher is None or self._flusher.done():
                self._flusher = self._loop.create_task(self._outlet.flush_quietly())


async def _all_ended(under_way: list[asyncio.Future[None]]) -> None:
    if under_way:
        await asyncio.wait(under_way)


class _Outlet:
    """Batches messages, and writes each batch whole, one write at a time."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._writing = asyncio.Lock()
        self._gathered: list[bytes] = []
        """Lines, whole ones together or a large one in pieces."""
        self._size = 0
        self._rest: bytes | memoryview = b""
        """What a write left over, to be written before all else."""
        self.on_room: list[Callable[[], None]] = []
        """What to call after the next write."""

    def hurry(self) -> None:
        """Give up, from now on, on a client that reads nothing."""
        self._writer.hurry()

    @property
    def has_room(self) -> bool:
        """Return whether the client keeps up: what is queued fits into one write."""
        return self._size <= _GATHERED_BYTES

    def put_all(self, answered: Iterable[CallState | Answer]) -> None:
        """Queue answers, those that have a body to send."""
        bodies: list[bytes] = []
        for each in answered:
            if type(each) is CallState:
                outcome = each.outcome
                assert outcome is not None
                if type(outcome) is Done and len(outcome.body) > _GATHERED_BYTES:
                    self._put(_lines(bodies), *_line_of(each.exchange.pieces(outcome)))
                    bodies = []
                    continue
                body = each.exchange.body(outcome)
            else:
                told = cast("Answer", each)
                body = None if told.is_notification else told.body
                if body is not None and len(body) > _GATHERED_BYTES:
                    self._put(_lines(bodies), *_line_of((body,)))
                    bodies = []
                    continue
            if body is not None:
                bodies.append(body)
        if bodies:
            lines = _lines(bodies)
            self._gathered.append(lines)
            self._size += len(lines)

    def _put(self, *pieces: bytes) -> None:
        self._gathered += pieces
        self._size += sum(map(len, pieces))

    def has_room_for(self, message: bytes) -> bool:
        """Return whether to queue a message that may be dropped.

        Not if the queue is larger than one write, nor if the same message is queued behind a blocked write:
        one notification of a change is enough.
        """
        is_behind = self._writing.locked() or bool(self._rest)
        # `put_now` queues each as a piece of its own, so that it is found again.
        return self.has_room and not (is_behind and message in self._gathered)

    def put_now(self, message: bytes) -> None:
        """Queue a message without waiting."""
        self._put(message, b"\n")

    async def flush(self) -> None:
        """Write what is queued.

        Raises `BrokenPipeError` where the client has stopped reading.
        """
        if not (self._gathered or self._rest):
            return
        async with self._writing:
            if self._rest:
                rest, self._rest = self._rest, b""
                await self._writer.write(rest)
            if self._gathered:
                # Small ones are joined: a system that cannot write without blocking writes each piece alone.
                is_large, pieces = self._size > _GATHERED_BYTES, self._take_all()
                await self._writer.write(*(pieces if is_large else (b"".join(pieces),)))
        self._tell_of_room()

    def flush_now(self) -> bool:
        """Write what is queued; return whether that is done, or has to be waited for in `flush`.

        Raises `BrokenPipeError` where the client has stopped reading.
        """
        if self._writing.locked() or self._rest:
            return False
        if self._gathered:
            if self._size > _GATHERED_BYTES:
                return False
            self._rest = self._writer.write_now(b"".join(self._take_all()))
            if self._rest:
                return False
            self._tell_of_room()
        return True

    def _take_all(self) -> list[bytes]:
        gathered, self._gathered, self._size = self._gathered, [], 0
        return gathered

    def _tell_of_room(self) -> None:
        if self.on_room:
            waiting, self.on_room = self.on_room, []
            for pass_on in waiting:
                pass_on()

    async def flush_all(self) -> None:
        """Write what is queued, and what is queued meanwhile.

        Raises `BrokenPipeError` where the client has stopped reading.
        """
        while self._gathered or self._rest:
            await self.flush()

    async def flush_quietly(self) -> None:
        """Write what is queued; if the client has stopped reading, the next answer raises the error."""
        with contextlib.suppress(BrokenPipeError):
            await self.flush_all()


def _lines(messages: list[bytes]) -> bytes:
    return b"\n".join((*messages, b""))  # with the last line end


def _line_of(pieces: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return a large message as a line, in its pieces; a notification has no answer, and no pieces."""
    return (*pieces, b"\n") if pieces else ()
