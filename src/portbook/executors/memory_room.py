"""`MemoryRoom`: how many bytes the requests of all calls may hold at once; who comes later waits for room."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, ParamSpec, TypeVar

__all__ = ["HeldMemory", "MemoryRoom"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class MemoryRoom:
    """A number of bytes, given out in the order in which they were asked for."""

    __slots__ = ("_free", "_total", "_waiting")

    def __init__(self, total: int) -> None:
        self._total = self._free = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def of(self, size: int) -> AsyncGenerator[HeldMemory]:
        """Hold `size` bytes; what is larger than all of the room has it for itself."""
        size = min(size, self._total)
        await self._take(size)
        held = HeldMemory(size, self._give_back)
        try:
            yield held
        finally:
            held.end()

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


class HeldMemory:
    """The bytes that one call holds."""

    __slots__ = ("_give_back", "_running", "_size")

    def __init__(self, size: int, give_back: Callable[[int], None]) -> None:
        self._size = size
        self._give_back = give_back
        self._running: asyncio.Future[Any] | None = None

    def keep_only(self, size: int) -> None:
        """Give back what is held beyond `size`."""
        if size < self._size:
            self._give_back(self._size - size)
            self._size = size

    async def in_thread(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what `work` does in a thread. If the call is cancelled, the bytes are held until it ends."""
        running = self._running = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        await asyncio.wait([running])  # leaves the thread alone when this call is cancelled
        self._running = None
        return running.result()

    def end(self) -> None:
        """Give everything back, at the latest when the thread has ended."""
        if self._running is None:
            self.keep_only(0)
        else:
            self._running.add_done_callback(self._abandoned)

    def _abandoned(self, ended: asyncio.Future[Any]) -> None:
        if not ended.cancelled():
            ended.exception()  # nobody waits for it, and a failure without a reader would be logged
        self.keep_only(0)
