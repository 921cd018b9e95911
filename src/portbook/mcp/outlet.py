"""The way to the client while a call runs: notifications and requests, in order, until the call ends.

A tool in a thread can report faster than the event loop passes reports on, or than its client reads. So the
reports of a call wait in a queue of limited size, and one callback of the loop passes on all that wait. If
the queue is full, the oldest reports are dropped: of progress, the newest report replaces all earlier ones.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from portbook.mcp.from_any_thread import is_on, run_on

__all__ = ["MAX_BYTES", "MAX_REPORTS", "Emit", "Outlet"]

# What waits for one call. A client that reads misses nothing unless its tool reports this much at once.
MAX_REPORTS: Final = 256
MAX_BYTES: Final = 64 * 1024


class Emit(Protocol):
    """Sends a notification or a request to the client. From any thread."""

    def __call__(
        self,
        message: bytes,
        is_wanted: Callable[[], bool],
        *,
        is_vital: bool = False,
        on_room: Callable[[], None] | None = None,
    ) -> bool:
        """Send `message`, if it is still wanted then; one that is not vital may be dropped.

        With `on_room`, it is not dropped where there is no room for it now: then this returns False, and
        `on_room` is called as soon as there is. Only on the event loop's thread.
        """
        ...


class _Waiting(NamedTuple):
    message: bytes
    is_vital: bool


class Outlet:
    """One call's way to its client. It ends with the call: later messages are dropped."""

    __slots__ = (
        "_bytes",
        "_emit",
        "_is_due",
        "_let_go",
        "_lock",
        "_loop",
        "_spare",
        "_waiting",
        "is_over",
        "reaches_client",
    )

    def __init__(
        self,
        emit: Emit,
        let_go: Callable[[], None] | None = None,
        *,
        reaches_client: bool = True,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Send with `emit`, on the event loop `loop`: by default the one that runs in this thread."""
        self._emit = emit
        self._let_go = let_go
        self.reaches_client = reaches_client
        """Whether the client gets messages before the answer."""
        self.is_over = False
        self._loop = loop or asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._spare = self._bytes = 0
        """How many of those that wait may be dropped, and their bytes."""
        self._is_due = False
        """Whether the loop, or room at the client's side, will pass on what waits."""

    def tell(self, message: bytes) -> None:
        """Send a message that may be dropped. From any thread."""
        self._put(_Waiting(message, is_vital=False))

    def send(self, message: bytes) -> None:
        """Send a message that must arrive. From any thread."""
        self._put(_Waiting(message, is_vital=True))

    def flush(self) -> None:
        """Pass on all that waits, whether there is room or not: the answer comes next."""
        self._pass_on(is_last=True)

    def let_go(self) -> None:
        """Close the stream that the client waits on, if it is resumable."""
        if self._let_go is not None:
            self._let_go()

    def _put(self, waiting: _Waiting) -> None:
        if self.is_over:
            return
        with self._lock:
            self._waiting.append(waiting)
            self._count(waiting, 1)
            while self._spare and (self._spare > MAX_REPORTS or self._bytes > MAX_BYTES):
                self._drop_oldest()
            if self._is_due and not (waiting.is_vital and is_on(self._loop)):
                return
            self._is_due = True
        run_on(self._loop, self._pass_on)

    def _drop_oldest(self) -> None:
        dropped = next(each for each in self._waiting if not each.is_vital)
        self._waiting.remove(dropped)
        self._count(dropped, -1)

    def _count(self, waiting: _Waiting, sign: int) -> None:
        if not waiting.is_vital:
            self._spare += sign
            self._bytes += sign * len(waiting.message)

    def _pass_on(self, *, is_last: bool = False) -> None:
        """Pass on what waits, in order. Where there is no room, the rest waits for it."""
        while True:
            with self._lock:
                if self.is_over:
                    self._waiting.clear()
                    self._spare = self._bytes = 0
                if not self._waiting:
                    self._is_due = False
                    return
                first = self._waiting.popleft()
                self._count(first, -1)
                is_forced = is_last or len(self._waiting) > self._spare  # something vital waits behind it
            is_vital = first.is_vital or is_forced
            on_room = None if is_vital else self._pass_on
            if self._emit(first.message, self._is_wanted, is_vital=is_vital, on_room=on_room) is False:
                with self._lock:
                    self._waiting.appendleft(first)
                    self._count(first, 1)
                return

    def _is_wanted(self) -> bool:
        return not self.is_over
