"""`PythonExecutor`: runs Python functions inline, in a worker thread, or in their own task."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from portbook.exception_place import ToolExit
from portbook.executors.coroutines import Coroutines
from portbook.executors.threads import Threads
from portbook.model import JSONObject, Run
from portbook.tools.catalog import Tool
from portbook.tools.context import running

__all__ = ["PythonExecutor"]


class PythonExecutor:
    """Executes tools that are Python functions."""

    def __init__(self, *, workers: int) -> None:
        self._workers = Threads(workers)
        self._tasks = Coroutines()

    @property
    def has_strays(self) -> bool:
        """Return whether an abandoned coroutine still runs, because it ignores cancellation."""
        return self._tasks.has_strays

    def execute(self, tool: Tool, arguments: JSONObject, run: Run) -> Any | Coroutine[Any, Any, Any]:
        """Run `tool` within the deadline of `run` and return its result, or a coroutine that waits for it.

        Raises `Refused` where it did not run, `Failed` where it did not end in time, and any exception of
        the tool.
        """
        spec, function = tool.spec, tool.spec.function
        assert function is not None
        if spec.takes_context:
            return self._execute_with_context(tool, function, arguments, run)
        if spec.is_async:
            coroutine: Any = function(arguments)
            return self._tasks.run(coroutine, run.timeout_ms / 1000)
        if spec.is_inline:
            return _inline(function, arguments)
        return self._workers.run(function, arguments, run.timeout_ms / 1000)

    def _execute_with_context(
        self, tool: Tool, function: Callable[[JSONObject], Any], arguments: JSONObject, run: Run
    ) -> Any | Coroutine[Any, Any, Any]:
        """Run a function whose `Context` has to find the call that it runs for."""
        spec, timeout_s = tool.spec, run.timeout_ms / 1000
        if spec.is_async:
            return self._tasks.run(_within(run, function, arguments), timeout_s, partial(_is_waiting, run))
        wrapped = _running(function, run)
        if spec.is_inline:
            return _inline(wrapped, arguments)
        return self._workers.run(wrapped, arguments, timeout_s)

    def close(self) -> None:
        """Let the worker threads end."""
        self._workers.close()


def _is_waiting(run: Run) -> bool:
    """Return whether the tool waits for an answer of its client."""
    client = run.reach()
    return client is not None and client.is_waiting


def _running(function: Callable[[JSONObject], Any], run: Run) -> Callable[[JSONObject], Any]:
    """Wrap `function` so that its `Context` finds the call it runs for."""

    def wrapped(arguments: JSONObject) -> Any:
        before = running.set(run)
        try:
            return function(arguments)
        finally:
            running.reset(before)

    return wrapped


async def _within(run: Run, function: Callable[[JSONObject], Any], arguments: JSONObject) -> Any:
    running.set(run)  # in the context of the task, which ends with it
    return await function(arguments)


def _inline(function: Callable[[JSONObject], Any], arguments: JSONObject) -> Any:
    try:
        return function(arguments)
    except Exception:
        raise
    except BaseException as error:  # noqa: BLE001 - no exception of a tool may end the server
        raise ToolExit(error) from None
