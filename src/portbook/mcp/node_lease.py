"""`NodeLease`: the name of this process among those that share a store, and whether the others live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["NodeLease"]


class NodeLease:
    """A name that is never used twice, held while this process lives."""

    def __init__(self, store: StorePort, draw: Callable[[int], bytes]) -> None:
        """Hold a name in `store`; `draw` gives the random bytes that it is made of."""
        self._store = store
        self._draw = draw
        self.name = ""
        self._owner = store.owner(self._draw_name)
        self._is_held = False

    def _draw_name(self) -> str:
        self.name = self._draw(8).hex()
        return self.name

    async def renew(self) -> None:
        """Hold a name; a new one, where the time of the last one has run out.

        Raises `StoreError` where that cannot be stored.
        """
        if self._is_held and self._owner.may_start(self.name):
            return
        since = self._owner.hold()
        self.name = await asyncio.wrap_future(self._store.submit(self._owner.claim))
        self._owner.confirm(self.name, since)
        self._is_held = True

    async def lives(self, name: str) -> bool:
        """Return whether the process with this name lives; one that does not never comes back.

        Raises `StoreError` where the store cannot be read.
        """
        return await self._store.fetch(lambda connection: self._owner.lives(name, connection), True)

    def release(self) -> None:
        """Let other processes know that this one has ended, after the store was closed."""
        self._owner.release()
