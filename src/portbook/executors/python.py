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
        spec = tool.spec
        assert spec.function is not None
        timeout_s = run.timeout_ms / 1000
        if spec.is_async:
            coroutine = _contained(spec.function, arguments, run)
            return self._tasks.run(coroutine, timeout_s, partial(_is_waiting, run))
        function = _running(spec.function, run)
        if spec.is_inline:
            try:
                return function(arguments)
            except Exception:
                raise
            except BaseException as error:  # noqa: BLE001 - no exception of a tool may end the server
                raise ToolExit(error) from None
        return self._workers.run(function, arguments, timeout_s)

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


async def _contained(function: Callable[[JSONObject], Any], arguments: JSONObject, run: Run) -> Any:
    running.set(run)  # in the context of the task, which ends with it
    try:
        return await function(arguments)
    except (SystemExit, KeyboardInterrupt) as error:  # a task would let these end the whole process
        raise ToolExit(error) from None
