"""Tasks for coroutines that mostly never wait: used again, and never seen to be."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from types import CoroutineType
from typing import Any

import pytest

from portbook.exception_place import ToolExit
from portbook.executors.coroutines import Coroutines
from support.python_tools import run_collecting_reports

VARIABLE: ContextVar[str] = ContextVar("variable", default="as it was")


async def settled(coroutines: Coroutines, coroutine: Coroutine[Any, Any, Any]) -> Any:
    result = coroutines.run(coroutine, 60)
    return await result if isinstance(result, CoroutineType) else result


async def task_of_mine() -> asyncio.Task[Any] | None:
    return asyncio.current_task()


async def task_after_a_wait() -> asyncio.Task[Any] | None:
    first = asyncio.current_task()
    await asyncio.sleep(0)
    assert asyncio.current_task() is first
    return first


def test_a_task_is_used_again_until_a_coroutine_waits_in_it() -> None:
    async def main() -> None:
        coroutines = Coroutines()
        quick = [coroutines.run(task_of_mine(), 60) for _ in range(3)]
        assert len(set(quick)) == 1
        waited = await settled(coroutines, task_after_a_wait())
        assert waited is quick[0]
        assert await settled(coroutines, task_of_mine()) is not waited

    assert run_collecting_reports(main) == []


def test_what_one_coroutine_sets_in_its_context_no_other_sees() -> None:
    async def sets() -> str:
        before = VARIABLE.get()
        VARIABLE.set("changed")
        return before

    async def main() -> None:
        coroutines = Coroutines()
        seen = [await settled(coroutines, sets()) for _ in range(3)]
        assert seen == ["as it was"] * 3
        assert VARIABLE.get() == "as it was"

    asyncio.run(main())


def test_a_coroutine_sees_the_context_of_its_call_in_every_step() -> None:
    async def sees() -> list[str]:
        seen = [VARIABLE.get()]
        token = VARIABLE.set("mine")
        await asyncio.sleep(0)
        seen.append(VARIABLE.get())
        VARIABLE.reset(token)
        return [*seen, VARIABLE.get()]

    async def main() -> None:
        coroutines = Coroutines()
        for value in ("one", "two"):
            VARIABLE.set(value)
            assert await settled(coroutines, sees()) == [value, "mine", value]

    asyncio.run(main())


def test_a_coroutine_that_cancels_its_task_and_returns_spoils_no_later_one() -> None:
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def main() -> None:
        coroutines = Coroutines()
        with pytest.raises(ToolExit):
            coroutines.run(cancels(), 60)
        await settled(coroutines, task_after_a_wait())

    assert run_collecting_reports(main) == []


def test_a_cancellation_right_after_the_first_step_reaches_the_coroutine() -> None:
    noted: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            noted.append("cancelled")
            raise

    async def main() -> None:
        waiting = Coroutines().run(waits(), 60)
        assert isinstance(waiting, CoroutineType)
        task = asyncio.ensure_future(waiting)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert noted == ["cancelled"]

    assert run_collecting_reports(main) == []


def test_a_task_of_a_loop_that_has_ended_is_not_used_again() -> None:
    coroutines = Coroutines()

    async def main() -> Any:
        return await settled(coroutines, task_of_mine())

    first, second = asyncio.run(main()), asyncio.run(main())
    assert first is not second
