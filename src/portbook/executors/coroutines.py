"""Runs tools' coroutines, each in its own task, with a deadline that holds even if one ignores cancellation.

Each has its own task, so that `asyncio.timeout` and the like inside it find the task they expect: a door may
run the first step of a call in one task and the rest in a different one. The task is started at once, so a
coroutine that never suspends needs no iteration of the loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from portbook.errors import Failed, Reason
from portbook.exception_place import ToolExit
from portbook.model import InputNeeded

__all__ = ["Coroutines"]

# Of the tasks of tools: a number of its own for each would cost more than the rest of making one.
_NAME: Final = "portbook-tool"


class Coroutines:
    """Runs coroutines, and tracks those that were abandoned."""

    def __init__(self) -> None:
        self._strays: set[asyncio.Task[Any]] = set()

    @property
    def has_strays(self) -> bool:
        """Return whether an abandoned coroutine still runs, because it ignores cancellation."""
        return bool(self._strays)

    def run(
        self,
        coroutine: Coroutine[Any, Any, Any],
        timeout_s: float,
        is_waiting: Callable[[], bool] | None = None,
    ) -> Any | Coroutine[Any, Any, Any]:
        """Return the result of `coroutine`, or a coroutine that waits for it.

        The deadline is suspended while it `is_waiting` for its caller.

        Raises `Failed` where it does not end in time, and any exception of the coroutine.
        """
        task = _started(coroutine)
        return _result_of(task) if task.done() else self._wait(task, timeout_s, is_waiting)

    async def _wait(
        self, task: asyncio.Task[Any], timeout_s: float, is_waiting: Callable[[], bool] | None
    ) -> Any:
        try:
            await asyncio.wait((task,), timeout=timeout_s)
            while not task.done() and is_waiting is not None and is_waiting():
                await asyncio.wait((task,), timeout=timeout_s)
        finally:
            if not task.done():
                self._abandon(task)
        if not task.done():
            raise Failed(Reason.TIMEOUT)
        return _result_of(task)

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        # Cancelled, but not awaited: a coroutine may ignore cancellation.
        task.cancel()
        self._strays.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._strays.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that the loop does not log it


def _result_of(task: asyncio.Task[Any]) -> Any:
    try:
        return task.result()
    except (Exception, InputNeeded):
        raise
    except BaseException as error:  # noqa: BLE001 - it cancelled itself, or would end the process
        raise ToolExit(error) from None


if sys.version_info >= (3, 12):

    def _started(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Return the task of `coroutine`, which has run up to its first wait."""
        return asyncio.Task(coroutine, loop=asyncio.get_running_loop(), name=_NAME, eager_start=True)

else:

    def _started(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Return the task of `coroutine`, which has run up to its first wait.

        A new task asks the loop to take its first step soon. Here the request is kept from the loop and the
        step is taken now, while the task around this call is not the current one.
        """
        loop: Any = asyncio.get_running_loop()
        steps: list[Callable[[], None]] = []

        def keep(step: Callable[[], None], *, context: contextvars.Context) -> None:
            steps.append(step)

        context = contextvars.copy_context()
        # An attribute of this loop hides the method of its class; Python's loops and uvloop allow that.
        loop.call_soon = keep
        try:
            task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, name=_NAME, context=context)
        finally:
            del loop.call_soon
        around = asyncio.current_task(loop)
        if around is not None:
            asyncio.tasks._leave_task(loop, around)  # noqa: SLF001 - asyncio documents both, for other tasks
        try:
            context.run(steps[0])
        finally:
            if around is not None:
                asyncio.tasks._enter_task(loop, around)  # noqa: SLF001 - as above
        return task
