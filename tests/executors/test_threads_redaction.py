"""Work on large values runs in a thread, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from portbook.errors import Failed, Reason
from portbook.executors.threads import LargeValues


def test_the_loop_goes_on_while_a_thread_works() -> None:
    async def run() -> int:
        large, steps, done = LargeValues(), 0, threading.Event()
        work = asyncio.ensure_future(large.run(done.wait))
        for _ in range(100):
            await asyncio.sleep(0)
            steps += not work.done()
        done.set()
        assert await work
        large.close()
        return steps

    assert asyncio.run(run()) == 100


def test_what_the_work_raises_is_raised_here() -> None:
    def fail() -> None:
        raise Failed(Reason.BAD_RESULT)

    async def run() -> None:
        large = LargeValues()
        with pytest.raises(Failed):
            await large.run(fail)
        large.close()
        large.close()

    asyncio.run(run())
