"""`ChangedLists`: asks a server for its lists again when it says that they have changed.

One question at a time, and a pause after each: a server that says so without end is asked as often as any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

__all__ = ["ChangedLists"]

# Several lists often change at once, and each says so.
_COALESCE_S: Final = 0.05
_PAUSE_S: Final = 0.5

Ask = Callable[[frozenset[str]], Coroutine[Any, Any, None]]


class ChangedLists:
    """What one server has announced, until it was asked."""

    def __init__(self, ask: Ask) -> None:
        """`ask` asks for the lists; it gets the notifications that came before, and raises nothing."""
        self._ask = ask
        self._announced: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")

    def announce(self, method: str) -> None:
        """Take a notification that a list has changed."""
        self._announced.add(method)
        if self._timer is None and self._asking is None:
            self._ask_soon()

    async def close(self) -> None:
        """Ask no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait((self._asking,))

    def _ask_soon(self) -> None:
        loop = asyncio.get_running_loop()
        wait_s = max(_COALESCE_S, self._asked_at + _PAUSE_S - loop.time())
        self._timer = loop.call_later(wait_s, self._begin)

    def _begin(self) -> None:
        self._timer = None
        announced, self._announced = frozenset(self._announced), set()
        self._asking = asyncio.get_running_loop().create_task(self._ask(announced))
        self._asking.add_done_callback(self._ended)

    def _ended(self, asking: asyncio.Task[None]) -> None:
        self._asking = None
        self._asked_at = asyncio.get_running_loop().time()
        if self._announced and not asking.cancelled():
            self._ask_soon()
