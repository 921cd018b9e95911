"""Runs tools' coroutines, each in a task, with a deadline that holds even if one ignores cancellation.

Each has its task from its first step on, so that `asyncio.timeout` and the like inside it find the task they
expect: a door may run the first step of a call in one task and the rest in a different one. The first step is
taken at once, and most coroutines take no second: then the task is kept for the next one.
"""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Final

from portbook.errors import Failed, Reason
from portbook.exception_place import ToolExit
from portbook.executors.eager_task import current_task_of, enter_task, leave_task
from portbook.executors.reusable_task import ReusableTask
from portbook.model import NOBODY, InputNeeded, JSONObject, Run, Start

__all__ = ["Coroutines"]

# More coroutines than this never take their first step inside each other.
_MAX_IDLE: Final = 4


class Coroutines:
    """Runs coroutines, and tracks those that were abandoned."""

    def __init__(self) -> None:
        self._strays: set[asyncio.Task[Any]] = set()
        self._idle: list[ReusableTask] = []

    @property
    def has_strays(self) -> bool:
        """Return whether an abandoned coroutine still runs, because it ignores cancellation."""
        return bool(self._strays)

    def starter(
        self,
        begin: Callable[[JSONObject], Coroutine[Any, Any, Any]],
        begin_within: Callable[[Run, JSONObject], Coroutine[Any, Any, Any]] | None = None,
        is_waiting: Callable[[Run], bool] | None = None,
    ) -> Start:
        """Return what runs the coroutines that `begin` returns: their result, or what waits for it.

        With `begin_within`, the run of the call is an argument, too. The deadline is suspended while the
        coroutine `is_waiting` for its caller.

        It raises `Failed` where a coroutine does not end in time, and any exception of it.
        """
        idle = self._idle

        def start(arguments: JSONObject, run: Run) -> Any | Coroutine[Any, Any, Any]:
            coroutine = begin(arguments) if begin_within is None else begin_within(run, arguments)
            loop = get_running_loop()
            reusable = idle.pop() if idle else None
            if reusable is None or reusable.loop is not loop or not _is_unchanged(reusable.context):
                reusable = ReusableTask(loop)
            # The first step, as if the task took it.
            around = current_task_of(loop)
            enter_task(loop, reusable.task)
            try:
                waiting_for = reusable.context.run(reusable.step, coroutine)
            except (Exception, InputNeeded):
                raise
            except BaseException as error:  # noqa: BLE001 - it cancelled itself, or would end the process
                raise ToolExit(error) from None
            finally:
                if around is None:
                    leave_task(loop)
                else:
                    enter_task(loop, around)
            if waiting_for is not reusable:
                return self._wait(reusable.run_on(waiting_for), run, is_waiting)
            if reusable.task.cancelling():
                raise ToolExit(asyncio.CancelledError())
            result, reusable.result = reusable.result, None
            if len(idle) < _MAX_IDLE:
                idle.append(reusable)
            return result

        return start

    def run(
        self, coroutine: Coroutine[Any, Any, Any], timeout_s: float
    ) -> Any | Coroutine[Any, Any, Any]:
        """Run a single coroutine."""
        return self.starter(lambda _: coroutine)({}, Run(round(timeout_s * 1000), NOBODY))

    async def _wait(
        self, task: asyncio.Task[Any], run: Run, is_waiting: Callable[[Run], bool] | None
    ) -> Any:
        timeout_s = run.timeout_ms / 1000
        try:
            await asyncio.wait((task,), timeout=timeout_s)
            while not task.done() and is_waiting is not None and is_waiting(run):
                await asyncio.wait((task,), timeout=timeout_s)
        finally:
            if not task.done():
                self._abandon(task)
        if not task.done():
            raise Failed(Reason.TIMEOUT)
        try:
            return task.result()
        except (Exception, InputNeeded):
            raise
        except BaseException as error:  # noqa: BLE001 - it cancelled itself
            raise ToolExit(error) from None

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        # Cancelled, but not awaited: a coroutine may ignore cancellation.
        task.cancel()
        self._strays.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._strays.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that the loop does not log it


def _is_unchanged(context: Context) -> bool:
    """Return whether a context still holds what the one around it does; its last coroutine may have changed it.

    One step nearly always, as they share their parts.
    """
    try:
        return context == copy_context()
    except Exception:  # noqa: BLE001 - a value that cannot be compared was changed
        return False
