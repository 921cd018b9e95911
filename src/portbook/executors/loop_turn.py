"""`LoopTurn`: does something once at the end of a turn of the event loop, for all who wait for it.

The answers of a server often come many at a time, and the calls that waited for them end in the same turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from portbook.net.taskless_waits import TasklessFuture

__all__ = ["LoopTurn"]


class LoopTurn:
    """The present turn of the event loop."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[TasklessFuture[None]] = []

    async def end(self, finish: Callable[[], None]) -> None:
        """Return after `finish` was called: by the first who waits in this turn, when all others do, too."""
        loop = asyncio.get_running_loop()
        waiter = TasklessFuture[None](loop=loop)  # of its own: one of them may be cancelled
        if loop is not self._loop:  # of those who waited in a loop that was stopped, nobody is left
            self._loop, self._waiting = loop, []
        if not self._waiting:
            loop.call_soon(self._finish, finish)
        self._waiting.append(waiter)
        await waiter

    def _finish(self, finish: Callable[[], None]) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            finish()
        finally:
            for waiter in waiting:
                if not waiter.done():
                    waiter.settle(None)
