"""Python functions made into tools, and an executor that runs them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any

from portbook.executors.python import PythonExecutor
from portbook.model import Identity, JSONObject, Run
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.spec import Effect, ToolSpec

LONG_MS = 30_000  # never waited for: where a test would, it has failed
SHORT_MS = 200


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
        result = self.prepare(tool)(arguments, run or Run(timeout_ms, Identity("r", "t", "s")))
        return await result if isinstance(result, CoroutineType) else result


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


def first_step(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine up to its end; fail if it waits for anything."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    coroutine.close()
    raise AssertionError("it waited")
