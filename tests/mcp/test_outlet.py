"""What waits on its way to a client: in order, bounded in count and bytes, passed on by one callback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from portbook.mcp.outlet import MAX_BYTES, MAX_REPORTS, Outlet


class Door:
    """Takes messages while it has room, and counts how often the loop was called from a thread."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.has_room = True
        self.on_room: list[Callable[[], None]] = []
        self.callbacks = 0
        loop = asyncio.get_running_loop()
        schedule = loop.call_soon_threadsafe

        def counted(*arguments: Any, **options: Any) -> Any:
            self.callbacks += getattr(arguments[0], "__name__", "") == "_pass_on"
            return schedule(*arguments, **options)

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign]

    def emit(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        if on_room is not None and not self.has_room:
            self.on_room.append(on_room)
            return False
        if is_wanted():
            self.taken.append(message)
        return True

    def make_room(self) -> None:
        self.has_room = True
        waiting, self.on_room = self.on_room, []
        for pass_on in waiting:
            pass_on()


def scene(play: Callable[[Door, Outlet], Awaitable[None]]) -> None:
    async def run() -> None:
        door = Door()
        await play(door, Outlet(door.emit))

    asyncio.run(run())


def in_a_thread(work: Callable[[], object]) -> None:
    """Run `work` to its end in a thread, while the loop does nothing."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.covers("mcp.reports.bounded")
def test_however_much_a_thread_reports_one_callback_passes_on_a_bounded_number() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        in_a_thread(lambda: [outlet.tell(b"%d" % number) for number in range(10_000)])
        assert (door.callbacks, door.taken) == (1, [])
        await asyncio.sleep(0)
        assert door.taken == [b"%d" % number for number in range(10_000 - MAX_REPORTS, 10_000)]

    scene(play)


@pytest.mark.parametrize("size", [1, 1000, MAX_BYTES, MAX_BYTES + 1])
def test_the_bytes_that_wait_are_bounded(size: int) -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        in_a_thread(lambda: [outlet.tell(b"x" * size) for _ in range(300)])
        await asyncio.sleep(0)
        assert len(door.taken) == min(MAX_REPORTS, MAX_BYTES // size)

    scene(play)


def test_reports_wait_for_room_and_the_newest_is_among_them() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        for number in range(1000):
            outlet.tell(b"%d" % number)
        assert (door.taken, len(door.on_room)) == ([], 1)
        door.make_room()
        assert (len(door.taken), door.taken[-1]) == (MAX_REPORTS, b"999")
        outlet.tell(b"next")
        assert door.taken[-1] == b"next"

    scene(play)


def test_what_is_vital_is_never_dropped_and_overtakes_nothing() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        outlet.tell(b"before")
        outlet.send(b"question")
        outlet.tell(b"after")
        assert door.taken == [b"before", b"question"]
        for _ in range(1000):
            outlet.tell(b"report")
        in_a_thread(lambda: outlet.send(b"question 2"))
        outlet.flush()
        assert door.taken.count(b"question 2") == 1

    scene(play)


def test_what_waits_comes_before_the_answer() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        outlet.tell(b"last words")
        outlet.flush()
        assert door.taken == [b"last words"]

    scene(play)


def test_nothing_is_kept_for_a_call_that_has_ended() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        outlet.tell(b"waits")
        outlet.is_over = True
        in_a_thread(lambda: outlet.tell(b"too late"))
        door.make_room()
        await asyncio.sleep(0)
        assert (door.taken, door.on_room) == ([], [])

    scene(play)
