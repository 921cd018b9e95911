"""The NDJSON door: one message a line in, one answer a line out, strictly in order, one at a time.

Answers are gathered and written together while messages keep coming, and at once when the next call has to
wait for something or nothing more has arrived.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final

from portbook.boundary import Boundary
from portbook.doors.streams import Reader, Writer
from portbook.model import Answer, Arrival
from portbook.wire.framing import Frame, LineSplitter

__all__ = ["NdjsonDoor"]

# Enough answers for one write; more would only hold memory.
_GATHERED_BYTES: Final = 1 << 16


class NdjsonDoor:
    """Serves one stream of lines."""

    def __init__(self, boundary: Boundary, reader: Reader, writer: Writer, arrival: Arrival) -> None:
        self._boundary = boundary
        self._reader = reader
        self._writer = writer
        self._arrival = arrival
        self._answers: list[bytes] = []
        self._gathered = 0
        self._is_stopping = False

    async def serve(self) -> None:
        """Answer messages until the stream ends; then answer what it ended on.

        Raises `BrokenPipeError` where nobody reads the answers any more.
        """
        splitter = LineSplitter()
        while chunk := await self._reader.read():
            await self._serve_all(splitter.feed(chunk))
        await self._serve_all(splitter.close())

    def stop(self) -> None:
        """Finish the call in flight, then take no more; what has not started never runs."""
        self._is_stopping = True
        self._reader.stop()

    async def _serve_all(self, frames: list[Frame]) -> None:
        for frame in frames:
            if self._is_stopping:
                break
            await self._serve(self._boundary.answer(frame, self._arrival))
        await self._flush()

    async def _serve(self, answering: Coroutine[Any, Any, Answer]) -> None:
        # Most calls never wait for anything: run until the first wait, and only then let earlier answers go.
        try:
            waiting_for = answering.send(None)
        except StopIteration as ended:
            answer: Answer = ended.value
        else:
            try:
                await self._flush()
            except BaseException:
                answering.close()  # ends the call here and now, so that its record is not written too late
                raise
            answer = await _Rest(answering, waiting_for)
        if answer.body is not None and not answer.is_notification:
            self._answers.append(answer.body)
            self._gathered += len(answer.body) + 1
            if self._gathered > _GATHERED_BYTES:
                await self._flush()

    async def _flush(self) -> None:
        if self._answers:
            gathered = b"\n".join(self._answers) + b"\n"
            self._answers.clear()
            self._gathered = 0
            await self._writer.write(gathered)


class _Rest:
    """What is left of a coroutine that has run up to its first wait.

    Safe because only our own stages run before it: a tool's coroutine has a task of its own.
    """

    __slots__ = ("_coroutine", "_waiting_for")

    def __init__(self, coroutine: Coroutine[Any, Any, Answer], waiting_for: Any) -> None:
        self._coroutine = coroutine
        self._waiting_for = waiting_for

    def __await__(self) -> Generator[Any, Any, Answer]:
        waiting_for = self._waiting_for
        while True:
            try:
                sent = yield waiting_for
            except BaseException as thrown:  # noqa: BLE001 - a cancellation, for the coroutine to see
                step = self._coroutine.throw
                value: Any = thrown
            else:
                step, value = self._coroutine.send, sent
            try:
                waiting_for = step(value)
            except StopIteration as ended:
                return ended.value
