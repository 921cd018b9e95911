"""`MemoryRoom`: how many bytes the requests of all calls may hold at once; who comes later waits for room."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

__all__ = ["MemoryRoom"]


class MemoryRoom:
    """A number of bytes, given out in the order in which they were asked for."""

    __slots__ = ("_free", "_total", "_waiting")

    def __init__(self, total: int) -> None:
        self._total = self._free = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def of(self, size: int) -> AsyncGenerator[None]:
        """Hold `size` bytes; what is larger than all of the room has it for itself."""
        size = min(size, self._total)
        await self._take(size)
        try:
            yield
        finally:
            self._give_back(size)

    async def _take(self, size: int) -> None:
        if size <= self._free and not self._waiting:
            self._free -= size
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                with suppress(ValueError):  # room came free before this task woke: it is no longer in line
                    self._waiting.remove((size, granted))
                self._grant()  # those behind it may need less
            else:
                self._give_back(size)
            raise

    def _give_back(self, size: int) -> None:
        self._free += size
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, granted = self._waiting.popleft()
            if not granted.done():
                self._free -= size
                granted.set_result(None)
