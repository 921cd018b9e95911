"""Members of a batch: cancelled one by one, or with their batch."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from portbook.mcp.batches import BatchMembers
from portbook.model import Answer

ANSWER = Answer(b"{}", 200)


class Member:
    """A member that waits until it is released, and notes how it ended."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.ended = ""

    async def answering(self) -> Answer:
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        self.ended = "answered"
        return ANSWER


class Stepped:
    """A batch as a door begins it: up to its first wait at once."""

    def __init__(self, batch: Coroutine[Any, Any, Answer | None]) -> None:
        self._batch = batch
        self._waits_for = batch.send(None)

    def __await__(self) -> Generator[Any, Any, Answer | None]:
        yield self._waits_for
        return (yield from self._batch.__await__())


def test_a_member_is_answered_or_cancelled_before_its_first_step_or_after() -> None:
    async def main() -> None:
        members = BatchMembers()
        for steps in (0, 1, 5):
            member = Member()
            batch = Stepped(members.run(1, member.answering()))
            for _ in range(steps):
                await asyncio.sleep(0)
            assert (members.cancel(2), members.cancel(1)) == (False, True)
            assert await batch is None
            assert (member.ended, members.cancel(1)) == ("cancelled", False)
        member = Member()
        member.released.set()
        assert await members.run(1, member.answering()) is ANSWER

    asyncio.run(main())


def test_with_its_batch_a_member_is_cancelled_and_has_ended_then() -> None:
    async def main() -> None:
        members, member = BatchMembers(), Member()
        batch = asyncio.create_task(members.run(1, member.answering()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        assert (member.ended, members.cancel(1)) == ("cancelled", False)

    asyncio.run(main())
