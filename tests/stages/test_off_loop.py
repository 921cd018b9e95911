"""Which work is done at once and which in a thread: by its size alone."""

from __future__ import annotations

import asyncio
import threading

import pytest

from portbook.errors import Failed, Reason
from portbook.stages.off_loop import LARGE_BYTES, OffLoop


@pytest.mark.parametrize(("size", "is_at_once"), [(0, True), (LARGE_BYTES, True), (LARGE_BYTES + 1, False)])
def test_only_large_values_go_to_a_thread(size: int, is_at_once: bool) -> None:
    async def run() -> bool:
        off_loop = OffLoop()
        try:
            return await off_loop.run(size, threading.current_thread) is threading.main_thread()
        finally:
            off_loop.close()

    assert asyncio.run(run()) is is_at_once


def test_the_loop_goes_on_while_a_thread_works() -> None:
    async def run() -> int:
        off_loop, steps, done = OffLoop(), 0, threading.Event()
        work = asyncio.ensure_future(off_loop.run(LARGE_BYTES + 1, done.wait))
        for _ in range(100):
            await asyncio.sleep(0)
            steps += not work.done()
        done.set()
        assert await work
        off_loop.close()
        return steps

    assert asyncio.run(run()) == 100


def test_what_the_work_raises_is_raised_here() -> None:
    def fail() -> None:
        raise Failed(Reason.BAD_RESULT)

    async def run() -> None:
        off_loop = OffLoop()
        with pytest.raises(Failed):
            await off_loop.run(LARGE_BYTES + 1, fail)
        off_loop.close()

    asyncio.run(run())
