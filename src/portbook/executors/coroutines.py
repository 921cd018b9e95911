"""Coroutines of tools, each in a task of its own, with a deadline that holds even if one refuses to end.

A task of its own, so that `asyncio.timeout` and the like inside it find the task they expect: a door may run
the first step of a call in one task and the rest in another. Where Python can start a task eagerly (3.12),
one that never suspends costs no trip through the loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from portbook.errors import Failed, Reason
from portbook.executors.threads import ToolExit
from portbook.model import InputNeeded

__all__ = ["Coroutines"]


class Coroutines:
    """Runs coroutines, and keeps an eye on those that were given up."""

    def __init__(self) -> None:
        self._strays: set[asyncio.Task[Any]] = set()

    @property
    def has_strays(self) -> bool:
        """Return whether a coroutine that was given up still runs, because it refuses to be cancelled."""
        return bool(self._strays)

    async def run(
        self,
        coroutine: Coroutine[Any, Any, Any],
        timeout_s: float,
        is_waiting: Callable[[], bool] | None = None,
    ) -> Any:
        """Return what `coroutine` returns; while it `is_waiting` for its caller, its deadline does not pass.

        Raises `Failed` where it does not end in time, and whatever it raises.
        """
        loop = asyncio.get_running_loop()
        if sys.version_info >= (3, 12):
            task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, eager_start=True)
        else:
            task = loop.create_task(coroutine)
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
        if task.cancelled():
            raise ToolExit("cancelled itself")
        if isinstance(task.exception(), Exception | InputNeeded | None):
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
