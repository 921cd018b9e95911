"""`StoreWatch`: waits for a store to change, whichever process changes it.

SQLite does not notify of changes, but reports its version within microseconds. One timer polls for all
waiting calls; without waiting calls there is no polling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from portbook.stores.connection_clock_and_errors import StoreError

if TYPE_CHECKING:
    from portbook.stores.store_port import Version

__all__ = ["POLL_S", "StoreWatch"]

# An operator does not notice a delay of a twentieth of a second.
POLL_S: Final = 0.05


class StoreWatch:
    """Wakes the calls that wait for a change."""

    def __init__(self, version: Callable[[], Version], *, poll_s: float = POLL_S) -> None:
        """Poll `version` every `poll_s` seconds while a call waits."""
        self._version = version
        self._poll_s = poll_s
        self._waiting: dict[asyncio.Future[None], Version] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def since(self, seen: Version, timeout_s: float) -> None:
        """Return once the version differs from `seen` or cannot be read, or after `timeout_s`."""
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
        """Wake all waiting calls, changed or not."""
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
            current = None  # the woken call reads the store and gets the error
        for changed, seen in self._waiting.items():
            if seen != current and not changed.done():
                changed.set_result(None)
        self._timer = asyncio.get_running_loop().call_later(self._poll_s, self._look)
