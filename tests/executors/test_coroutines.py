"""Coroutines of tools: each in a task of its own, with a deadline that holds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from types import CoroutineType
from typing import Any

import pytest
import uvloop

from portbook.errors import Failed, Reason
from portbook.exception_place import ToolExit
from portbook.executors.coroutines import Coroutines
from portbook.model import JSONObject
from support.python_tools import SHORT_MS, executor, first_step, make_tool_as_is, run_collecting_reports


def test_a_coroutine_that_never_suspends_never_waits_for_the_loop() -> None:
    async def quick(_: JSONObject) -> str:
        return "done"

    async def main() -> None:
        assert first_step(executor().execute(make_tool_as_is(quick), {})) == "done"

    asyncio.run(main())


def test_a_coroutine_has_one_task_of_its_own_from_its_first_step_to_its_last() -> None:
    seen: list[asyncio.Task[Any] | None] = []

    async def looks(_: JSONObject) -> None:
        seen.append(asyncio.current_task())
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    async def main() -> None:
        around = asyncio.current_task()
        await executor().execute(make_tool_as_is(looks), {})
        assert asyncio.current_task() is around
        first, last = seen
        assert first is last
        assert isinstance(first, asyncio.Task)
        assert first is not around

    assert run_collecting_reports(main) == []


def test_a_coroutine_is_started_at_once_on_the_loop_of_the_http_door_too() -> None:
    async def looks(_: JSONObject) -> bool:
        first = asyncio.current_task()
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
        return asyncio.current_task() is first

    async def main() -> None:
        around = asyncio.current_task()
        assert await executor().execute(make_tool_as_is(looks), {}) is True
        assert asyncio.current_task() is around

    uvloop.run(main())


def test_a_timeout_in_the_first_step_ends_the_wait_and_never_the_task_around_the_call() -> None:
    async def impatient(_: JSONObject) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return "went on"

    async def main() -> None:
        around = asyncio.current_task()
        assert around is not None
        assert await executor().execute(make_tool_as_is(impatient), {}) == "went on"
        await asyncio.sleep(0)
        assert not around.cancelling()

    assert run_collecting_reports(main) == []


def test_a_failing_group_in_the_first_step_cancels_its_own_task_and_not_the_one_around_the_call() -> None:
    async def fails() -> None:
        raise LookupError

    async def wait_beside_a_failure() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            await asyncio.Event().wait()

    async def grouped(_: JSONObject) -> str:
        with pytest.raises(ExceptionGroup):
            await wait_beside_a_failure()
        return "went on"

    async def main() -> None:
        around = asyncio.current_task()
        assert around is not None
        assert await executor().execute(make_tool_as_is(grouped), {}) == "went on"
        await asyncio.sleep(0)
        assert not around.cancelling()

    assert run_collecting_reports(main) == []


def test_a_variable_set_in_the_first_step_is_there_in_the_next_and_not_around_the_call() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    async def sets(_: JSONObject) -> str:
        variable.set("set")
        await asyncio.sleep(0)
        return variable.get()

    async def main() -> None:
        assert await executor().execute(make_tool_as_is(sets), {}) == "set"
        assert variable.get() == "unset"

    assert run_collecting_reports(main) == []


def test_an_exception_of_the_first_step_leaves_the_task_around_the_call_current() -> None:
    async def raises(_: JSONObject) -> None:
        raise LookupError

    async def main() -> None:
        around = asyncio.current_task()
        with pytest.raises(LookupError):
            await executor().execute(make_tool_as_is(raises), {})
        assert asyncio.current_task() is around
        await asyncio.sleep(0)

    assert run_collecting_reports(main) == []


def test_a_coroutine_is_cancelled_at_its_deadline_and_may_clean_up() -> None:
    cleaned: list[str] = []

    async def tidy(_: JSONObject) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    async def main() -> None:
        runner = executor(SHORT_MS)
        with pytest.raises(Failed):
            await runner.execute(make_tool_as_is(tidy), {})
        assert len(runner._tasks._strays) == 1
        await asyncio.gather(*runner._tasks._strays, return_exceptions=True)
        await asyncio.sleep(0)  # its callbacks may run after those of gather
        assert not runner._tasks._strays

    assert run_collecting_reports(main) == []
    assert cleaned == ["up"]


def test_a_coroutine_that_refuses_to_be_cancelled_does_not_hold_up_its_deadline() -> None:
    async def main() -> None:
        release = asyncio.Event()
        refusals: list[str] = []

        async def stubborn(_: JSONObject) -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    refusals.append("no")
            return "too late"

        runner = executor(SHORT_MS)
        with pytest.raises(Failed) as caught:
            await runner.execute(make_tool_as_is(stubborn), {})
        assert caught.value.reason is Reason.TIMEOUT
        (stray,) = runner._tasks._strays
        release.set()
        assert await stray == "too late"
        assert refusals == ["no"]
        await asyncio.sleep(0)
        assert not runner._tasks._strays

    assert run_collecting_reports(main) == []


def test_an_exception_that_comes_after_the_deadline_is_reported_nowhere() -> None:
    async def late(_: JSONObject) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("too late")

    async def main() -> None:
        runner = executor(SHORT_MS)
        with pytest.raises(Failed):
            await runner.execute(make_tool_as_is(late), {})
        await asyncio.wait(set(runner._tasks._strays))
        await asyncio.sleep(0)
        assert not runner._tasks._strays

    assert run_collecting_reports(main) == []


def test_a_timeout_inside_a_coroutine_is_its_own_affair() -> None:
    async def careful(_: JSONObject) -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "fallback"
        return "unreachable"

    async def main() -> None:
        assert await executor().execute(make_tool_as_is(careful), {}) == "fallback"

    asyncio.run(main())


def test_a_task_group_inside_a_coroutine_works() -> None:
    async def parallel(_: JSONObject) -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(0, at)) for at in range(3)]
        return [task.result() for task in tasks]

    async def main() -> None:
        assert await executor().execute(make_tool_as_is(parallel), {}) == [0, 1, 2]

    asyncio.run(main())


def test_a_coroutine_that_cancels_itself_ends_its_call_alone() -> None:
    async def giving_up(_: JSONObject) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async def main() -> None:
        with pytest.raises(ToolExit):
            await executor().execute(make_tool_as_is(giving_up), {})
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(main())


def test_a_coroutine_has_a_task_of_its_own() -> None:
    async def which(_: JSONObject) -> object:
        return asyncio.current_task()

    async def main() -> None:
        assert await executor().execute(make_tool_as_is(which), {}) is not asyncio.current_task()

    asyncio.run(main())


def test_a_cancelled_call_cancels_its_coroutine() -> None:
    seen: list[str] = []

    async def main() -> None:
        started = asyncio.Event()

        async def waiting(_: JSONObject) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        runner = executor()
        call = asyncio.create_task(runner.execute(make_tool_as_is(waiting), {}))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.gather(*runner._tasks._strays, return_exceptions=True)
        await asyncio.sleep(0)  # its callbacks may run after those of gather
        assert not runner._tasks._strays

    assert run_collecting_reports(main) == []
    assert seen == ["cancelled"]


def test_a_call_that_is_given_up_before_its_coroutine_began_leaves_nothing_behind() -> None:
    async def tool(_: JSONObject) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        runner = executor()
        call = runner.execute(make_tool_as_is(tool), {})
        call.send(None)  # up to its first wait; before Python 3.12 the coroutine has not begun then
        call.close()
        await asyncio.gather(*runner._tasks._strays, return_exceptions=True)
        await asyncio.sleep(0)  # its callbacks may run after those of gather
        assert not runner._tasks._strays

    # A coroutine that was never awaited would be a warning, and a warning is an error.
    assert run_collecting_reports(main) == []


# Tasks for coroutines that mostly never wait: used again, and never seen to be.

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
