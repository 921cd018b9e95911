"""Python functions as tools: inline, in a thread, as a task; their deadlines, their ways to fail."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from portbook.errors import Failed, Reason, Refused
from portbook.executors.python import PythonExecutor
from portbook.executors.threads import ToolExit
from portbook.model import Identity, JSONObject, Run
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.spec import Effect, ToolSpec

LONG_MS = 30_000  # never waited for: where a test would, it has failed
SHORT_MS = 200

WAYS = ("inline", "thread", "async")


def make_tool(function: Callable[[JSONObject], Any], way: str, timeout_ms: int | None = None) -> Tool:
    """Make a tool of a plain function, to be run in one of the three ways."""

    async def run_async(arguments: JSONObject) -> Any:
        await asyncio.sleep(0)
        return function(arguments)

    return make_tool_as_is(
        run_async if way == "async" else function,
        is_async=way == "async",
        is_inline=way == "inline",
        timeout_ms=timeout_ms,
    )


def make_tool_as_is(
    function: Callable[[JSONObject], Any],
    *,
    is_async: bool = True,
    is_inline: bool = False,
    timeout_ms: int | None = None,
) -> Tool:
    spec = ToolSpec(
        "tool",
        "",
        {},
        True,
        Effect.READ,
        function,
        is_async=is_async,
        is_inline=is_inline,
        timeout_ms=timeout_ms,
    )
    tool = Catalog([spec]).find("tool")
    assert tool is not None
    return tool


class Runner(PythonExecutor):
    """The executor with one worker, handed what the pipeline would hand it."""

    def __init__(self, timeout_ms: int) -> None:
        super().__init__(workers=1)
        self._timeout_ms = timeout_ms

    async def execute(self, tool: Tool, arguments: JSONObject, run: Run | None = None) -> Any:
        """Run `tool` as the pipeline does: within its own time, or else the runner's."""
        timeout_ms = tool.spec.timeout_ms or self._timeout_ms
        return await super().execute(tool, arguments, run or Run(timeout_ms, Identity("r", "t", "s")))


def executor(timeout_ms: int = LONG_MS) -> Runner:
    return Runner(timeout_ms)


def run_collecting_reports(main: Callable[[], Coroutine[Any, Any, None]]) -> list[dict[str, Any]]:
    """Run `main`; return what its loop had to report about exceptions that nobody looked at."""
    reported: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        await main()
        gc.collect()

    asyncio.run(watched())
    return reported


class Unheard(BaseException):
    """Not an `Exception`: what tools should not raise, and do."""


# --- what all three ways have in common


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_gets_its_arguments_and_its_result_comes_back_as_it_is(way: str) -> None:
    async def main() -> None:
        arguments: JSONObject = {"a": [1]}
        assert await executor().execute(make_tool(lambda given: given, way), arguments) is arguments

    asyncio.run(main())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "raised",
    [ValueError("x"), TimeoutError(), Refused(Reason.BAD_ARGUMENTS), Failed(Reason.BAD_RESULT)],
    ids=lambda value: type(value).__name__,
)
def test_an_exception_of_a_tool_comes_back_as_it_is(way: str, raised: Exception) -> None:
    def function(_: JSONObject) -> None:
        raise raised

    async def main() -> None:
        with pytest.raises(type(raised)) as caught:
            await executor().execute(make_tool(function, way), {})
        assert caught.value is raised

    asyncio.run(main())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "raised", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Unheard, StopIteration]
)
def test_nothing_that_a_tool_raises_ends_more_than_its_call(way: str, raised: type[BaseException]) -> None:
    def function(_: JSONObject) -> None:
        raise raised

    # Python itself makes a RuntimeError of a StopIteration that leaves a coroutine.
    seen = RuntimeError if raised is StopIteration and way != "thread" else ToolExit

    async def main() -> None:
        runner = executor()
        with pytest.raises(seen):
            await runner.execute(make_tool(function, way), {})
        assert await runner.execute(make_tool(lambda _: "next", way), {}) == "next"

    assert run_collecting_reports(main) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_sees_the_context_of_its_caller(way: str) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")

    async def main() -> None:
        variable.set("seen")
        assert await executor().execute(make_tool(lambda _: variable.get(), way), {}) == "seen"

    asyncio.run(main())


@pytest.mark.parametrize(("way", "is_here"), [("inline", True), ("thread", False), ("async", True)])
def test_only_a_plain_function_leaves_the_thread_of_the_loop(way: str, is_here: bool) -> None:
    async def main() -> None:
        thread = await executor().execute(make_tool(lambda _: threading.get_ident(), way), {})
        assert (thread == threading.get_ident()) is is_here

    asyncio.run(main())


def first_step(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine up to its end; fail if it waits for anything."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    coroutine.close()
    raise AssertionError("it waited")


def test_an_inline_tool_never_waits_for_the_loop() -> None:
    assert first_step(executor().execute(make_tool(lambda _: "done", "inline"), {})) == "done"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python starts tasks eagerly since 3.12")
def test_a_coroutine_that_never_suspends_never_waits_for_the_loop() -> None:
    async def quick(_: JSONObject) -> str:
        return "done"

    async def main() -> None:
        assert first_step(executor().execute(make_tool_as_is(quick), {})) == "done"

    asyncio.run(main())


# --- deadlines


@pytest.mark.parametrize("way", ["thread", "async"])
@pytest.mark.parametrize(
    ("own_ms", "default_ms"),
    [pytest.param(None, SHORT_MS, id="the default"), pytest.param(SHORT_MS, LONG_MS, id="its own, shorter")],
)
def test_a_tool_that_hangs_fails_at_its_deadline_and_the_next_is_served(
    way: str, own_ms: int | None, default_ms: int
) -> None:
    release = threading.Event()

    async def hang_async(_: JSONObject) -> None:
        await asyncio.Event().wait()

    def hang(_: JSONObject) -> None:
        assert release.wait(LONG_MS / 1000)

    async def main() -> None:
        runner = executor(default_ms)
        hanging = make_tool_as_is(
            hang_async if way == "async" else hang, is_async=way == "async", timeout_ms=own_ms
        )
        with pytest.raises(Failed) as caught:
            await runner.execute(hanging, {})
        assert caught.value.reason is Reason.TIMEOUT
        assert await runner.execute(make_tool(lambda _: "next", way, LONG_MS), {}) == "next"

    try:
        asyncio.run(main())
    finally:
        release.set()


@pytest.mark.parametrize("way", ["thread", "async"])
def test_a_tool_with_a_longer_deadline_of_its_own_is_not_held_to_the_default(way: str) -> None:
    release = threading.Event()

    async def wait_async(_: JSONObject) -> str:
        await asyncio.to_thread(release.wait, LONG_MS / 1000)
        return "in time"

    def wait(_: JSONObject) -> str:
        assert release.wait(LONG_MS / 1000)
        return "in time"

    async def forever(_: JSONObject) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        runner = executor(SHORT_MS)
        patient = make_tool_as_is(
            wait_async if way == "async" else wait, is_async=way == "async", timeout_ms=LONG_MS
        )
        call = asyncio.create_task(runner.execute(patient, {}))
        await asyncio.sleep(0)
        with pytest.raises(Failed):  # started later, held to the default: when it is over, the default is too
            await runner.execute(make_tool_as_is(forever), {})
        release.set()
        assert await call == "in time"

    asyncio.run(main())


# --- coroutines


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
