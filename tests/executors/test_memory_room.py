"""Room in memory: given out in order, given back whatever happens, and never more than there is."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from portbook.executors.http_request_threads_and_uploads import MemoryRoom


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Holder:
    """A task that asks for room, and holds it until it is told to go."""

    def __init__(self, room: MemoryRoom, size: int) -> None:
        self.is_in = False
        self._go = asyncio.Event()
        self.task = asyncio.create_task(self._hold(room, size))

    async def _hold(self, room: MemoryRoom, size: int) -> None:
        async with room.of(size):
            self.is_in = True
            await self._go.wait()
        self.is_in = False

    async def go(self) -> None:
        self._go.set()
        await settled()


def test_who_finds_no_room_waits_for_it_in_order() -> None:
    async def main() -> None:
        room = MemoryRoom(10)
        first, large, small = Holder(room, 6), Holder(room, 8), Holder(room, 1)
        await settled()
        assert (first.is_in, large.is_in, small.is_in) == (True, False, False)
        await first.go()
        assert (large.is_in, small.is_in) == (True, True)
        for holder in (large, small):
            await holder.go()
        async with room.of(10):
            pass

    asyncio.run(main())


def test_what_is_larger_than_the_room_has_it_alone() -> None:
    async def main() -> None:
        room = MemoryRoom(10)
        large, other = Holder(room, 1000), Holder(room, 1)
        await settled()
        assert (large.is_in, other.is_in) == (True, False)
        await large.go()
        assert other.is_in
        await other.go()

    asyncio.run(main())


def test_who_gives_up_holds_nobody_up() -> None:
    async def main() -> None:
        room = MemoryRoom(10)
        first, large, small = Holder(room, 6), Holder(room, 8), Holder(room, 1)
        await settled()
        large.task.cancel()
        await settled()
        assert small.is_in
        await first.go()
        granted = Holder(room, 9)
        await settled()
        assert granted.is_in
        await small.go()
        await granted.go()

    asyncio.run(main())


def test_room_that_was_granted_to_a_cancelled_call_is_given_back() -> None:
    async def main() -> None:
        room = MemoryRoom(10)
        waiting: Holder | None = None
        async with AsyncExitStack() as held:
            await held.enter_async_context(room.of(10))
            waiting = Holder(room, 10)
            await settled()
        waiting.task.cancel()  # granted in this step, and not yet awake
        await settled()
        assert not waiting.is_in
        async with asyncio.timeout(5), room.of(10):
            pass

    asyncio.run(main())


def test_who_gives_up_as_room_comes_free_is_only_cancelled() -> None:
    async def main() -> None:
        room = MemoryRoom(10)
        async with AsyncExitStack() as held:
            await held.enter_async_context(room.of(10))
            waiting, behind = Holder(room, 10), Holder(room, 10)
            await settled()
            waiting.task.cancel()  # not yet awake when the room comes free
        await settled()
        assert waiting.task.cancelled()
        assert behind.is_in
        await behind.go()

    asyncio.run(main())


def test_room_is_given_back_after_a_failure() -> None:
    async def main() -> None:
        room = MemoryRoom(10)
        with pytest.raises(ZeroDivisionError):
            async with room.of(10):
                raise ZeroDivisionError
        async with asyncio.timeout(5), room.of(10):
            pass

    asyncio.run(main())


def test_what_is_not_needed_any_more_is_given_back_early() -> None:
    async def main() -> None:
        room = MemoryRoom(10)
        async with asyncio.timeout(5), room.of(10) as held:
            held.keep_only(4)
            held.keep_only(20)
            async with room.of(6):
                too_many = Holder(room, 1)
                await settled()
                assert not too_many.is_in
            await too_many.go()
        async with asyncio.timeout(5), room.of(10):
            pass

    asyncio.run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_room_is_held_until_the_thread_of_a_cancelled_call_has_ended(fails: bool) -> None:
    async def main() -> None:
        room, started, may_end = MemoryRoom(10), threading.Event(), threading.Event()
        unread: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context))

        def work() -> None:
            started.set()
            may_end.wait(5)
            if fails:
                raise ZeroDivisionError

        async def call() -> None:
            async with room.of(10) as held:
                await held.in_thread(work)

        cancelled = asyncio.create_task(call())
        await asyncio.to_thread(started.wait, 5)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        behind = Holder(room, 1)
        await settled()
        assert not behind.is_in
        may_end.set()
        async with asyncio.timeout(5), room.of(9):
            assert behind.is_in
        await behind.go()
        assert not unread

    asyncio.run(main())
