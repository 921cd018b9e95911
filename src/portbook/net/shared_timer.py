"""`SharedTimer`: ends what is waited for too long, with one timer for all.

A timer of its own for each call would cost as much as the rest of the waiting, and nearly none is ever due.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any, Final

__all__ = ["SharedTimer"]

# How late the end may come, at most, so that many deadlines that differ a little are looked at together.
_GRAIN_S: Final = 0.005


class SharedTimer:
    """The futures of one event loop that have to be done by a certain time."""

    __slots__ = ("_loop", "_timer", "_timer_at", "_until")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._until: dict[asyncio.Future[Any], float] = {}

    def add(self, future: asyncio.Future[Any], until: float) -> None:
        """Fail `future` with a `TimeoutError` at that time on the loop's clock, unless it is removed."""
        self._until[future] = until
        loop = future.get_loop()
        if until < self._timer_at or loop is not self._loop:
            if loop is not self._loop:  # of those who waited in a loop that was stopped, nobody is left
                self._loop, self._timer, self._until = loop, None, {future: until}
            self._set(loop, until)

    def remove(self, future: asyncio.Future[Any]) -> None:
        """Forget `future`, which was added once."""
        self._until.pop(future, None)

    def close(self) -> None:
        """Stop the timer; what is still waited for ends now, because nothing would end it later."""
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._until = self._until, {}
        for future in waiting:
            if not future.done() and not future.get_loop().is_closed():
                future.set_exception(TimeoutError())
        self._loop, self._timer, self._timer_at = None, None, inf

    def _set(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = loop.call_at(at, self._end_due, loop), at

    def _end_due(self, loop: asyncio.AbstractEventLoop) -> None:
        now, self._timer, self._timer_at = loop.time(), None, inf
        due = [future for future, until in self._until.items() if until <= now]
        for future in due:
            del self._until[future]
            if not future.done():
                future.set_exception(TimeoutError())
        if self._until:
            self._set(loop, max(min(self._until.values()), now + _GRAIN_S))
