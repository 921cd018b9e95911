"""The way to a client: in order, in short steps, finished only when it is sent, until the call ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from portbook.mcp.report_queue import MAX_BYTES, MAX_REPORTS, Outlet
from portbook.model import Draft


class Door:
    """Takes messages while it has room, and counts the messages of each step of the loop."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.steps: list[int] = []
        self.has_room = True
        self.on_room: list[Callable[[], None]] = []

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

    async def settle(self) -> None:
        """Let the loop run until it passes on nothing more."""
        while True:
            before = len(self.taken)
            await asyncio.sleep(0)
            if len(self.taken) == before:
                return
            self.steps.append(len(self.taken) - before)


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


def report(outlet: Outlet, message: bytes, finished: list[bytes] | None = None) -> None:
    def finish() -> bytes:
        if finished is not None:
            finished.append(message)
        return message

    outlet.report(Draft(len(message), finish))


def test_of_a_flood_only_what_is_sent_is_ever_finished() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        finished: list[bytes] = []
        for number in range(10_000):
            report(outlet, b"%d" % number, finished)
        assert finished == []
        await door.settle()
        assert finished == door.taken == [b"%d" % number for number in range(10_000 - MAX_REPORTS, 10_000)]

    scene(play)


@pytest.mark.parametrize(("size", "most"), [(1, 32), (1000, 7), (8192, 1), (MAX_BYTES, 1)])
def test_one_step_of_the_loop_finishes_a_bounded_number_of_bytes(size: int, most: int) -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        for _ in range(100):
            report(outlet, b"x" * size)
        await door.settle()
        assert len(door.taken) == min(100, MAX_BYTES // size)
        assert max(door.steps) == most

    scene(play)


def test_reports_wait_for_room_and_the_newest_is_among_them() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        for number in range(1000):
            report(outlet, b"%d" % number)
        await door.settle()
        assert (door.taken, len(door.on_room)) == ([], 1)
        door.make_room()
        await door.settle()
        assert door.taken == [b"%d" % number for number in range(1000 - MAX_REPORTS, 1000)]
        report(outlet, b"next")
        await door.settle()
        assert door.taken[-1] == b"next"

    scene(play)


def test_a_report_that_cannot_be_sent_is_left_out() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        outlet.report(Draft(1, lambda: None))
        report(outlet, b"next")
        await door.settle()
        assert door.taken == [b"next"]

    scene(play)


def test_what_is_vital_is_never_dropped_and_overtakes_nothing() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        report(outlet, b"before")
        outlet.send(b"question")
        report(outlet, b"after")
        assert door.taken == [b"before", b"question"]
        for _ in range(1000):
            report(outlet, b"report")
        in_a_thread(lambda: outlet.send(b"question 2"))
        await door.settle()
        assert door.taken[-1] == b"question 2"
        assert len(door.taken) == 2 + MAX_REPORTS + 1

    scene(play)


def test_what_waits_comes_before_the_answer() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        report(outlet, b"last words")
        outlet.flush()
        assert door.taken == [b"last words"]

    scene(play)


def test_nothing_is_kept_for_a_call_that_has_ended() -> None:
    async def play(door: Door, outlet: Outlet) -> None:
        door.has_room = False
        report(outlet, b"waits")
        await door.settle()
        outlet.end()
        in_a_thread(lambda: report(outlet, b"too late"))
        outlet.tell(b"too late")
        outlet.send(b"too late")
        door.make_room()
        await door.settle()
        assert (door.taken, door.on_room) == ([], [])

    scene(play)
