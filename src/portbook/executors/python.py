"""`PythonExecutor`: runs Python functions inline, in a worker thread, or in their own task."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias, cast

from portbook.exception_place import ToolExit
from portbook.executors.coroutines import Coroutines
from portbook.executors.threads import Threads
from portbook.model import JSONObject, Run, Start
from portbook.tools.catalog import Tool
from portbook.tools.context import running

__all__ = ["PythonExecutor"]

_Function: TypeAlias = Callable[[JSONObject], Any]
_Begin: TypeAlias = Callable[[JSONObject], Coroutine[Any, Any, Any]]


class PythonExecutor:
    """Executes tools that are Python functions."""

    def __init__(self, *, workers: int) -> None:
        self._workers = Threads(workers)
        self._tasks = Coroutines()

    @property
    def has_strays(self) -> bool:
        """Return whether an abandoned coroutine still runs, because it ignores cancellation."""
        return self._tasks.has_strays

    def prepare(self, tool: Tool) -> Start:
        """Return what runs `tool` within a deadline, and returns its result or a coroutine that waits for it.

        It raises `Refused` where the tool did not run, `Failed` where it did not end in time, and any
        exception of the tool.
        """
        spec, function = tool.spec, tool.spec.function
        assert function is not None
        takes_context = spec.takes_context
        if spec.is_async:
            within = partial(_within, function) if takes_context else None
            return self._tasks.starter(cast("_Begin", function), within, _is_waiting)
        if spec.is_inline:
            return _inline(function, takes_context=takes_context)
        return self._in_thread(function, takes_context=takes_context)

    # Functions, and not partial ones: Python calls those in half the steps.

    def _in_thread(self, function: _Function, *, takes_context: bool) -> Start:
        run_in_thread = self._workers.run

        def start(arguments: JSONObject, run: Run) -> Any:
            return run_in_thread(function, arguments, run.timeout_ms / 1000)

        def start_with_context(arguments: JSONObject, run: Run) -> Any:
            return run_in_thread(_with_context(function, run), arguments, run.timeout_ms / 1000)

        return start_with_context if takes_context else start

    def close(self) -> None:
        """Let the worker threads end."""
        self._workers.close()


def _is_waiting(run: Run) -> bool:
    """Return whether the tool waits for an answer of its client."""
    client = run.reach()
    return client is not None and client.is_waiting


def _with_context(function: _Function, run: Run) -> _Function:
    """Wrap `function` so that its `Context` finds the call it runs for."""

    def wrapped(arguments: JSONObject) -> Any:
        before = running.set(run)
        try:
            return function(arguments)
        finally:
            running.reset(before)

    return wrapped


async def _within(function: _Function, run: Run, arguments: JSONObject) -> Any:
    running.set(run)  # in the context of the task, which ends with it
    return await function(arguments)


def _inline(function: _Function, *, takes_context: bool) -> Start:
    def start(arguments: JSONObject, run: Run) -> Any:
        try:
            return (_with_context(function, run) if takes_context else function)(arguments)
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - no exception of a tool may end the server
            raise ToolExit(error) from None

    return start
