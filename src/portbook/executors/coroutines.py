"""Runs tools' coroutines, each in its own task, with a deadline that holds even if one ignores cancellation.

Each has its own task, so that `asyncio.timeout` and the like inside it find the task they expect: a door may
run the first step of a call in one task and the rest in a different one. The task is started at once, so a
coroutine that never suspends needs no iteration of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from portbook.errors import Failed, Reason
from portbook.exception_place import ToolExit
from portbook.executors.eager_task import start_now
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

    async def run(
        self,
        coroutine: Coroutine[Any, Any, Any],
        timeout_s: float,
        is_waiting: Callable[[], bool] | None = None,
    ) -> Any:
        """Return the result of `coroutine`; its deadline is suspended while it `is_waiting` for its caller.

        Raises `Failed` where it does not end in time, and any exception of the coroutine.
        """
        task = start_now(coroutine, _NAME)
        if not task.done():
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
        except BaseException as error:  # noqa: BLE001 - it cancelled itself, or would end the process
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
