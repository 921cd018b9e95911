"""Python functions as tools: inline, in a thread, as a task; their deadlines, their ways to fail."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from portbook.errors import Failed, Reason, Refused
from portbook.exception_place import ToolExit
from portbook.model import JSONObject
from support.python_tools import (
    LONG_MS,
    SHORT_MS,
    executor,
    first_step,
    make_tool,
    make_tool_as_is,
    run_collecting_reports,
)

WAYS = ("inline", "thread", "async")


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


def test_an_inline_tool_never_waits_for_the_loop() -> None:
    assert first_step(executor().execute(make_tool(lambda _: "done", "inline"), {})) == "done"


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
