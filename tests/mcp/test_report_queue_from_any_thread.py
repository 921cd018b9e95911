"""Calls from any thread run on the loop: at once from its own thread, in order from a different one."""

from __future__ import annotations

import asyncio
import threading

import pytest

from portbook.mcp.report_queue import run_on


def test_on_the_loop_it_runs_at_once() -> None:
    async def main() -> None:
        ran: list[int] = []
        run_on(asyncio.get_running_loop(), ran.append, 1)
        assert ran == [1]

    asyncio.run(main())


def test_from_a_thread_it_runs_on_the_loop_in_order() -> None:
    async def main() -> None:
        loop, home, ran = asyncio.get_running_loop(), threading.get_ident(), list[tuple[int, int]]()

        def from_elsewhere() -> None:
            for number in range(100):
                run_on(loop, lambda number: ran.append((number, threading.get_ident())), number)

        await asyncio.to_thread(from_elsewhere)
        await asyncio.sleep(0)
        assert ran == [(number, home) for number in range(100)]

    asyncio.run(main())


def test_from_a_thread_with_a_loop_of_its_own_it_runs_on_the_loop_that_is_meant() -> None:
    async def main() -> None:
        loop, ran = asyncio.get_running_loop(), list[asyncio.AbstractEventLoop]()

        async def on_a_different_loop() -> None:
            run_on(loop, lambda: ran.append(asyncio.get_running_loop()))

        await asyncio.to_thread(lambda: asyncio.run(on_a_different_loop()))
        await asyncio.sleep(0)
        assert ran == [loop]

    asyncio.run(main())


def test_what_it_raises_on_the_loop_reaches_the_caller() -> None:
    def fail() -> None:
        raise ValueError

    async def main() -> None:
        with pytest.raises(ValueError, match=r"^$"):
            run_on(asyncio.get_running_loop(), fail)

    asyncio.run(main())
