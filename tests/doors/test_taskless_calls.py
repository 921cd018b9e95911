"""A call that waits is stepped without a task where it can be, and in one where it has to be."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from typing import Any

from portbook.doors.taskless_calls import SteppedCall
from portbook.executors.threads import LoopTurn
from portbook.net.taskless_waits import TasklessFuture


class Scene:
    """Calls, and how they ended."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.taskless: TasklessFuture[str] = TasklessFuture(loop=self.loop)
        self.plain: asyncio.Future[str] = self.loop.create_future()
        self.ends: list[str | None] = []

    def run(self, coroutine: Coroutine[Any, Any, str]) -> SteppedCall[str]:
        return SteppedCall(coroutine, coroutine.send(None), lambda _, answer: self.ends.append(answer))


def test_a_call_goes_on_without_a_task_as_soon_as_its_response_is_there() -> None:
    async def main() -> None:
        scene = Scene()

        async def call() -> str:
            return await scene.taskless

        scene.run(call())
        tasks = asyncio.all_tasks()
        scene.taskless.settle("said")
        assert scene.ends == ["said"]
        assert asyncio.all_tasks() == tasks

    asyncio.run(main())


def test_a_call_that_waits_for_anything_else_has_a_task_of_its_own() -> None:
    async def main() -> None:
        scene = Scene()

        async def call() -> str:
            said = await scene.taskless
            async with asyncio.timeout(None if await scene.plain else 0):
                return said + await scene.plain

        running = scene.run(call())
        scene.taskless.settle("said ")
        scene.plain.set_result("so")
        await running.ended()
        assert scene.ends == ["said so"]

    asyncio.run(main())


def test_a_cancelled_call_learns_it_where_it_waits() -> None:
    async def main() -> None:
        for is_taskless in (True, False):
            scene = Scene()
            learnt: list[bool] = []

            async def call(scene: Scene = scene, is_taskless: bool = is_taskless) -> str:
                try:
                    return await (scene.taskless if is_taskless else scene.plain)
                except asyncio.CancelledError:
                    learnt.append(is_taskless)  # noqa: B023 - it is over before the next
                    raise

            running = scene.run(call())
            await asyncio.sleep(0)  # a task takes its first step
            running.cancel()
            await running.ended()
            assert (learnt, scene.ends) == ([is_taskless], [None])

    asyncio.run(main())


def test_a_call_that_is_cancelled_once_its_response_is_there_still_ends_as_cancelled() -> None:
    async def main() -> None:
        scene = Scene()

        async def call() -> str:
            return await scene.taskless

        running = scene.run(call())
        scene.taskless.set_result("said")  # it goes on soon
        running.cancel()
        await running.ended()
        assert scene.ends == [None]

    asyncio.run(main())


def test_a_call_may_wait_again_after_it_was_cancelled() -> None:
    async def main() -> None:
        scene = Scene()

        async def call() -> str:
            try:
                return await scene.taskless
            except asyncio.CancelledError:
                return await scene.plain

        running = scene.run(call())
        running.cancel()
        scene.loop.call_later(0.01, scene.plain.set_result, "at last")
        await running.ended()
        assert scene.ends == ["at last"]

    asyncio.run(main())


def test_a_call_whose_task_never_took_a_step_is_closed() -> None:
    async def main() -> None:
        scene = Scene()
        closed: list[int] = []

        async def call() -> str:
            try:
                return await scene.plain
            finally:
                closed.append(1)

        running = scene.run(call())
        running.cancel()
        await running.ended()
        assert (closed, scene.ends) == ([1], [None])

    asyncio.run(main())


def test_a_bug_is_reported_and_the_call_has_ended() -> None:
    async def main() -> None:
        for is_taskless in (True, False):
            scene = Scene()
            reported: list[BaseException] = []
            scene.loop.set_exception_handler(lambda _, about: reported.append(about["exception"]))  # noqa: B023

            async def call(scene: Scene = scene, is_taskless: bool = is_taskless) -> str:
                await (scene.taskless if is_taskless else scene.plain)
                raise ZeroDivisionError

            running = scene.run(call())
            ended = running.ended()
            scene.taskless.settle("said")
            scene.plain.set_result("said")
            await ended
            assert scene.ends == [None]
            assert [type(error) for error in reported] == [ZeroDivisionError]

    asyncio.run(main())


def test_an_ended_call_is_free_at_once() -> None:
    async def main() -> None:
        scene = Scene()

        async def call() -> str:
            return await scene.taskless

        running = scene.run(call())
        seen = weakref.ref(scene.taskless)
        scene.taskless.settle("said")
        scene.taskless = TasklessFuture(loop=scene.loop)
        assert seen() is None
        running.cancel()  # comes too late, and does nothing
        assert scene.ends == ["said"]

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def test_what_fails_after_one_call_holds_up_no_other() -> None:
    async def main() -> None:
        faults: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, fault: faults.append(fault))
        turn, ended = LoopTurn(), list[str]()

        async def call(name: str) -> str:
            await turn.end(lambda: None)
            return name

        def on_end(_: SteppedCall[str], answer: str | None) -> None:
            ended.append(str(answer))
            if answer == "first":
                raise ValueError

        for name in ("first", "second", "third"):
            coroutine = call(name)
            SteppedCall(coroutine, coroutine.send(None), on_end)
        while len(ended) < 3:
            await asyncio.sleep(0)
        assert ended == ["first", "second", "third"]
        assert [type(fault["exception"]) for fault in faults] == [ValueError]

    asyncio.run(main())
