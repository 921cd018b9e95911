"""Waiting for a store to change, whichever process changes it.

SQLite tells nobody of a change, but answers in microseconds whether there was one. However many wait, one
timer asks for all of them; when nobody waits, nobody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from portbook.stores.errors import StoreError
from portbook.stores.sqlite import Version

__all__ = ["POLL_S", "StoreWatch"]

# A person who has just decided does not notice a twentieth of a second.
POLL_S: Final = 0.05


class StoreWatch:
    """Wakes those who wait for a change."""

    def __init__(self, version: Callable[[], Version], *, poll_s: float = POLL_S) -> None:
        """Ask `version` every `poll_s` seconds while somebody waits."""
        self._version = version
        self._poll_s = poll_s
        self._waiting: dict[asyncio.Future[None], Version] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def since(self, seen: Version, timeout_s: float) -> None:
        """Return once the version is another than `seen` or cannot be told, or when the time is over."""
        loop = asyncio.get_running_loop()
        changed: asyncio.Future[None] = loop.create_future()
        self._waiting[changed] = seen
        if self._timer is None:
            self._timer = loop.call_later(self._poll_s, self._look)
        try:
            await asyncio.wait((changed,), timeout=timeout_s)
        finally:
            del self._waiting[changed]
            if not self._waiting:
                self._stop()

    def wake(self) -> None:
        """Wake everybody, changed or not."""
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        try:
            current = self._version()
        except StoreError:
            current = None  # whoever wakes will find out for himself
        for changed, seen in self._waiting.items():
            if seen != current and not changed.done():
                changed.set_result(None)
        self._timer = asyncio.get_running_loop().call_later(self._poll_s, self._look)
