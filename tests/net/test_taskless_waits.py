"""A time limit holds whichever task runs the coroutine, and never hides a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from portbook.doors.taskless_calls import Remainder
from portbook.net.taskless_waits import TimeLimited


def limited(coroutine: Coroutine[Any, Any, Any], seconds: float = 0.0) -> TimeLimited[Any]:
    return TimeLimited(coroutine, asyncio.get_running_loop().time() + seconds)


async def never() -> None:
    await asyncio.get_running_loop().create_future()


async def awaited(limit: TimeLimited[Any]) -> Any:
    return await limit


def test_a_coroutine_that_ends_in_time_returns_its_result_and_leaves_no_timer() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def told() -> str:
            return await answer

        answer: asyncio.Future[str] = loop.create_future()
        loop.call_soon(answer.set_result, "said")
        assert await limited(told(), 60) == "said"
        timers: list[asyncio.TimerHandle] = vars(loop)["_scheduled"]
        assert [timer for timer in timers if not timer.cancelled()] == []

    asyncio.run(main())


def test_a_coroutine_that_takes_longer_is_cancelled_where_it_waits() -> None:
    ends: list[str] = []

    async def waits() -> None:
        try:
            await never()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await limited(waits())
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    asyncio.run(main())
    assert ends == ["cancelled"]


def test_the_first_step_may_be_taken_outside_a_task_and_the_rest_in_one() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[Remainder[Any]] = loop.create_future()

        def begin() -> None:
            assert asyncio.current_task() is None
            coroutine = awaited(limited(never()))
            begun.set_result(Remainder(coroutine, coroutine.send(None)))

        loop.call_soon(begin)
        with pytest.raises(TimeoutError):
            await (await begun)

    asyncio.run(main())


def test_a_coroutine_between_two_turns_of_the_loop_learns_that_its_time_is_over_with_its_next_step() -> None:
    async def turns() -> None:
        while True:
            await asyncio.sleep(0)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await limited(turns())

    asyncio.run(main())


def test_an_answer_that_came_in_the_same_turn_as_the_limit_is_late() -> None:
    async def main() -> None:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def told() -> None:
            await answer
            await never()

        waiting = asyncio.ensure_future(awaited(limited(told(), 0.01)))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, answer.set_result, None)
        with pytest.raises(TimeoutError):
            await waiting

    asyncio.run(main())


def test_a_cancelled_task_is_cancelled_although_the_time_is_over_too() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        limit = limited(never(), 60)
        task = asyncio.ensure_future(awaited(limit))
        await asyncio.sleep(0)
        loop.call_soon(limit._end)
        loop.call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_an_exception_of_the_coroutine_passes() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise LookupError

    async def main() -> None:
        with pytest.raises(LookupError):
            await limited(fails(), 60)

    asyncio.run(main())


def test_a_coroutine_that_is_closed_leaves_no_timer() -> None:
    async def main() -> None:
        coroutine = awaited(limited(never(), 60))
        coroutine.send(None)
        coroutine.close()
        timers: list[asyncio.TimerHandle] = vars(asyncio.get_running_loop())["_scheduled"]
        assert [timer for timer in timers if not timer.cancelled()] == []

    asyncio.run(main())
