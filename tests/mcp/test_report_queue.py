"""Reports that wait for their client: bounded, and tools wait for room, but not for long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from portbook.mcp.report_queue import MAX_BYTES, MAX_REPORTS, PATIENCE_S, ReportQueue
from portbook.model import Draft


def draft(message: bytes) -> Draft[bytes | None]:
    return Draft(len(message), lambda: message)


def drained(queue: ReportQueue) -> list[bytes | None]:
    found: list[bytes | None] = []
    while taken := queue.take():
        found += [each.draft.finish() for each in taken]
    return found


def scene(play: Callable[[ReportQueue], Awaitable[None]]) -> None:
    async def run() -> None:
        await play(ReportQueue(asyncio.get_running_loop()))

    asyncio.run(run())


def fill(queue: ReportQueue) -> None:
    for number in range(MAX_REPORTS):
        queue.put(draft(b"%d" % number), is_vital=False)


@pytest.mark.parametrize("size", [1, 1000, MAX_BYTES, MAX_BYTES + 1])
def test_what_waits_is_bounded_in_count_and_bytes_and_the_oldest_goes(size: int) -> None:
    async def play(queue: ReportQueue) -> None:
        queue.put(draft(b"vital"), is_vital=True)
        for number in range(300):
            queue.put(draft(b"%d" % number + b"x" * (size - len(b"%d" % number))), is_vital=False)
        vital, *reports = drained(queue)
        assert vital == b"vital"
        assert len(reports) == min(MAX_REPORTS, MAX_BYTES // size)
        assert all(each is not None and each.startswith(b"29") for each in reports[-3:])

    scene(play)


def test_only_the_first_to_put_something_has_to_tell_the_loop() -> None:
    async def play(queue: ReportQueue) -> None:
        assert [queue.put(draft(b"x"), is_vital=False) for _ in range(3)] == [True, False, False]
        taken = queue.take(1)
        assert (len(taken), queue.is_idle) == (1, False)
        assert queue.put(draft(b"x"), is_vital=False) is False  # whoever took has to come again
        taken += queue.take()
        queue.put_back(taken)
        assert queue.put(draft(b"x"), is_vital=False) is False  # and so has whoever put back
        assert len(drained(queue)) == 5
        assert queue.put(draft(b"x"), is_vital=False) is True

    scene(play)


def test_a_thread_waits_until_half_of_the_queue_is_taken() -> None:
    async def play(queue: ReportQueue) -> None:
        fill(queue)
        thread = threading.Thread(target=queue.wait_for_room, args=(1,))
        thread.start()
        drained(queue)
        await asyncio.to_thread(thread.join)
        assert queue.put(draft(b"next"), is_vital=False) is True

    scene(play)


def test_a_tool_does_not_wait_again_for_a_client_that_takes_nothing() -> None:
    async def play(queue: ReportQueue) -> None:
        fill(queue)
        waits: list[object] = []
        wait = queue._opened.wait  # pyright: ignore[reportPrivateUsage] - counts how often it waits
        queue._opened.wait = lambda timeout=None: waits.append(timeout) or wait(0)  # type: ignore[method-assign]
        for _ in range(3):
            await asyncio.to_thread(queue.wait_for_room, 1)
        assert waits == [0.5]
        await queue.room()  # nor on the loop

    scene(play)


def test_a_client_that_reads_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(queue: ReportQueue) -> None:
        fill(queue)
        loop, elapsed = asyncio.get_running_loop(), 0.0

        def wait(timeout: float | None = None) -> bool:
            nonlocal elapsed
            assert timeout is not None
            elapsed += timeout
            return True  # woken, but others have filled it again

        monkeypatch.setattr(loop, "time", lambda: elapsed)
        monkeypatch.setattr(queue._opened, "wait", wait)  # pyright: ignore[reportPrivateUsage]
        for _ in range(3):
            queue.wait_for_room(1)
        assert elapsed == pytest.approx(PATIENCE_S)

    scene(play)


def test_a_coroutine_lets_the_loop_run_and_waits_for_room() -> None:
    async def play(queue: ReportQueue) -> None:
        await queue.room()  # nothing waits: at once
        fill(queue)
        asyncio.get_running_loop().call_soon(drained, queue)
        await queue.room()
        assert queue.take() == []

    scene(play)


def test_a_loop_in_a_thread_of_its_own_does_not_wait_twice() -> None:
    async def play(queue: ReportQueue) -> None:
        fill(queue)
        await asyncio.to_thread(lambda: asyncio.run(queue.room()))

    scene(play)


def test_nobody_waits_for_a_call_that_has_ended() -> None:
    async def play(queue: ReportQueue) -> None:
        fill(queue)
        thread = threading.Thread(target=queue.wait_for_room, args=(1,))
        thread.start()
        queue.close()
        await asyncio.to_thread(thread.join)
        assert queue.put(draft(b"too late"), is_vital=True) is False
        queue.put_back([])
        assert queue.take() == []

    scene(play)
