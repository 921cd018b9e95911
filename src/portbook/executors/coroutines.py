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
from portbook.executors.eager_task import swap_current_task
from portbook.executors.reusable_task import ReusableTask
from portbook.model import InputNeeded

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
        loop, idle = get_running_loop(), self._idle
        reusable = idle.pop() if idle else None
        # Its last coroutine may have changed its context: then it is not used again.
        if reusable is None or reusable.loop is not loop or not _is_same(reusable.context, copy_context()):
            reusable = ReusableTask(loop)
        # The first step, as if the task took it. Here, because each function that a StopIteration passes
        # through costs as much as the rest of this one.
        around = swap_current_task(loop, reusable.task)
        try:
            waiting_for = reusable.context.run(coroutine.send, None)
        except StopIteration as ended:
            if reusable.task.cancelling():
                raise ToolExit(asyncio.CancelledError()) from None
            if len(idle) < _MAX_IDLE:
                idle.append(reusable)
            return ended.value
        except (Exception, InputNeeded):
            raise
        except BaseException as error:  # noqa: BLE001 - it cancelled itself, or would end the process
            raise ToolExit(error) from None
        finally:
            swap_current_task(loop, around)
        return self._wait(reusable.run_on(coroutine, waiting_for), timeout_s, is_waiting)

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


def _is_same(one: Context, other: Context) -> bool:
    """Return whether two contexts hold the same: one step nearly always, as they share their parts."""
    try:
        return one == other
    except Exception:  # noqa: BLE001 - a value that cannot be compared was changed
        return False
