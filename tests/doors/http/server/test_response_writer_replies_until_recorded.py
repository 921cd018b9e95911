"""Calls of one turn of the loop are recorded together, then answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from portbook.doors.http.response import HeldReply
from portbook.doors.http.server import response_writer as module
from portbook.doors.http.server.response_writer import HeldReplies
from portbook.stages.state import CallState


class Diary:
    """Notes what was written, in order."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def flush(self) -> None:
        self.notes.append("records")


class Connection:
    def __init__(self, name: str, diary: Diary, then: Callable[[], None] = lambda: None) -> None:
        self._name = name
        self._diary = diary
        self._then = then

    def release(self, held: HeldReply) -> None:
        self._diary.notes.append(self._name)
        self._then()


def play(main: Callable[[HeldReplies, Diary], Coroutine[Any, Any, None]]) -> None:
    async def scene() -> None:
        await main(HeldReplies(), Diary())

    asyncio.run(scene())


def held(diary: Diary) -> HeldReply:
    return HeldReply(diary, cast("CallState", object()))


def test_the_calls_of_a_turn_are_recorded_at_once_and_then_answered() -> None:
    async def main(replies: HeldReplies, diary: Diary) -> None:
        for name in ("first", "second"):
            replies.add(Connection(name, diary), held(diary))
        assert diary.notes == []
        await asyncio.sleep(0)
        assert diary.notes == ["records", "first", "second"]

    play(main)


def test_a_call_that_follows_an_answer_belongs_to_the_next_turn() -> None:
    async def main(replies: HeldReplies, diary: Diary) -> None:
        def go_on() -> None:
            replies.add(Connection("second", diary), held(diary))

        replies.add(Connection("first", diary, go_on), held(diary))
        await asyncio.sleep(0)
        assert diary.notes == ["records", "first"]
        await asyncio.sleep(0)
        assert diary.notes == ["records", "first", "records", "second"]

    play(main)


def test_a_turn_is_full_after_64_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "monotonic", lambda: 0.0)  # a busy machine may take longer than a turn

    async def main(replies: HeldReplies, diary: Diary) -> None:
        for number in range(64):
            assert not replies.is_full
            replies.add(Connection(str(number), diary), held(diary))
        assert replies.is_full
        replies.release()
        assert diary.notes == ["records", *map(str, range(64))]
        assert not replies.is_full

    play(main)


def test_a_turn_is_full_when_its_calls_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.0015, 0.0021])
    monkeypatch.setattr(module, "monotonic", lambda: next(times))

    async def main(replies: HeldReplies, diary: Diary) -> None:
        for is_full in (False, False, True):
            replies.add(Connection("each", diary), held(diary))
            assert replies.is_full is is_full
        replies.release()

    play(main)
