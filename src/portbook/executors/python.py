"""Runs Python functions: inline, in a worker thread, or as a task of their own.

A coroutine gets a task of its own, so that `asyncio.timeout` and the like inside it find the task they
expect. Where Python can start a task eagerly (3.12), one that never suspends costs no trip through the loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from portbook.errors import Failed, Reason
from portbook.executors.workers import ToolExit, Workers
from portbook.model import JSONObject, Report
from portbook.tools.catalog import Tool
from portbook.tools.context import reporting

__all__ = ["PythonExecutor"]


class PythonExecutor:
    """Executes tools that are Python functions."""

    def __init__(self, *, timeout_ms: int, workers: int) -> None:
        self._timeout_ms = timeout_ms
        self._workers = Workers(workers)
        self._strays: set[asyncio.Task[Any]] = set()

    @property
    def has_strays(self) -> bool:
        """Return whether a coroutine that was given up still runs, because it refuses to be cancelled."""
        return bool(self._strays)

    async def execute(self, tool: Tool, arguments: JSONObject, report: Report | None = None) -> Any:
        """Run `tool` within its deadline and return what it returned; `report` is for its progress.

        Raises `Refused` where it did not run, `Failed` where it did not end in time, and whatever it raised.
        """
        spec = tool.spec
        timeout_s = (spec.timeout_ms or self._timeout_ms) / 1000
        if spec.is_async:
            return await self._run_task(_contained(spec.function, arguments, report), timeout_s)
        function = spec.function if report is None else _reporting(spec.function, report)
        if spec.is_inline:
            try:
                return function(arguments)
            except Exception:
                raise
            except BaseException:  # noqa: BLE001 - nothing a tool raises ends the server, a cancellation included
                raise ToolExit("exit") from None
        return await self._workers.run(function, arguments, timeout_s)

    async def _run_task(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float) -> Any:
        loop = asyncio.get_running_loop()
        if sys.version_info >= (3, 12):
            task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, eager_start=True)
        else:
            task = loop.create_task(coroutine)
        if not task.done():
            try:
                await asyncio.wait((task,), timeout=timeout_s)
            finally:
                if not task.done():
                    self._abandon(task)
        if not task.done():
            raise Failed(Reason.TIMEOUT)
        if task.cancelled():
            raise ToolExit("cancelled itself")
        if isinstance(task.exception(), Exception | None):
            return task.result()
        raise ToolExit("exit")

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        # Cancelled, but not waited for: a coroutine may refuse to be cancelled.
        task.cancel()
        self._strays.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._strays.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that the loop does not report it


def _reporting(function: Callable[[JSONObject], Any], report: Report) -> Callable[[JSONObject], Any]:
    """Return `function` with somewhere to tell its progress."""

    def run(arguments: JSONObject) -> Any:
        token = reporting.set(report)
        try:
            return function(arguments)
        finally:
            reporting.reset(token)

    return run


async def _contained(
    function: Callable[[JSONObject], Any], arguments: JSONObject, report: Report | None
) -> Any:
    reporting.set(report)  # in the task's own context, which ends with it
    try:
        return await function(arguments)
    except (SystemExit, KeyboardInterrupt):  # a task would let these end the whole process
        raise ToolExit("exit") from None
