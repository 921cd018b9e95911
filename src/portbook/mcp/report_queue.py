"""The reports of one call that wait for their client: in order, bounded, and filled from any thread.

A tool can report faster than its client reads. While the queue is full, the tool waits for room, and so a
client that reads misses nothing. It does not wait for a client that reads nothing, nor for long altogether:
then the oldest reports are dropped, because of progress the newest says all.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from math import inf
from typing import Final

from portbook.mcp.from_any_thread import is_on
from portbook.model import Draft
from portbook.text.named_tuple import NamedTuple

__all__ = ["MAX_BYTES", "MAX_REPORTS", "PATIENCE_S", "ReportQueue", "Waiting"]

# What waits for one call.
MAX_REPORTS: Final = 256
MAX_BYTES: Final = 64 * 1024

# What a report costs beside its text, in bytes of text: its check and its JSON.
_REPORT_BYTES: Final = 256

# After so many reports, a thread gives way: far less than a millisecond of them.
_GIVES_WAY: Final = 32

# How long a tool waits for room: for a client that takes nothing, and altogether. A call that takes longer
# because of its reports may miss its deadline, and reports are not worth that.
GLANCE_S: Final = 0.5
PATIENCE_S: Final = 2.0


class Waiting(NamedTuple):
    """A message that waits; one that is not vital may be dropped."""

    draft: Draft[bytes | None]
    is_vital: bool


class ReportQueue:
    """A queue between a tool, in whatever thread it runs, and the event loop, which alone takes from it."""

    __slots__ = (
        "_bytes",
        "_has_room",
        "_is_closed",
        "_loop",
        "_opened",
        "_patience_s",
        "_reports",
        "_spare",
        "_waiting",
        "is_idle",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Waiting] = deque()
        self._spare = self._bytes = 0
        """How many of those that wait may be dropped, and their bytes."""
        self.is_idle = True
        """Whether nothing waits, and so nobody comes to take it."""
        self._is_closed = False
        self._patience_s = PATIENCE_S
        self._reports = 0
        self._opened = threading.Condition(threading.Lock())
        self._has_room = asyncio.Event()

    def put(self, draft: Draft[bytes | None], *, is_vital: bool) -> bool:
        """Add a message, and drop the oldest reports if there are too many.

        Return whether the queue was idle: then somebody has to be told to take from it.
        """
        with self._opened:
            if self._is_closed:
                return False
            self._waiting.append(Waiting(draft, is_vital))
            self._count(self._waiting[-1], 1)
            while self._spare and (self._spare > MAX_REPORTS or self._bytes > MAX_BYTES):
                self._drop_oldest()
            was_idle, self.is_idle = self.is_idle, False
            return was_idle

    def take(self, most_bytes: float = inf) -> list[Waiting]:
        """Take all messages, or the first that cost about so many bytes of text.

        Not one by one: a thread that loses its turn while it holds the lock keeps the loop waiting for it.
        """
        with self._opened:
            taken: list[Waiting] = []
            cost = 0
            while self._waiting and cost < most_bytes:
                first = self._waiting.popleft()
                self._count(first, -1)
                cost += first.draft.size + _REPORT_BYTES
                taken.append(first)
            self.is_idle = not self._waiting
            # Half of it at once: a thread that is woken for each report does little else.
            if self._is_half_empty:
                self._wake()
            return taken

    def put_back(self, unsent: list[Waiting]) -> None:
        """Put back what was taken, because there is no room for it yet; whoever makes room will tell."""
        with self._opened:
            if not self._is_closed:
                self.is_idle = False
                for each in reversed(unsent):
                    self._waiting.appendleft(each)
                    self._count(each, 1)

    def close(self) -> None:
        """Drop all that waits, and all that is still to come: the call has ended."""
        with self._opened:
            self._is_closed = True
            self._waiting.clear()
            self._spare = self._bytes = 0
            self._wake()

    def wait_for_room(self, size: int) -> None:
        """Wait until a report of this size has room. In a tool's thread; the loop's own never waits."""
        with self._opened:
            self._reports += 1
            is_due = self._reports % _GIVES_WAY == 0
            while self._patience_s > 0 and not self._has_room_for(size):
                began = self._loop.time()
                is_open = self._opened.wait(min(GLANCE_S, self._patience_s))
                self._spend(began, is_open=is_open)
        if is_due:
            time.sleep(0)  # lets the loop have the interpreter, which threads take for 5 ms each otherwise

    async def room(self) -> None:
        """Let other calls run, then wait until the next report has room, whatever its size. On the loop."""
        if not is_on(self._loop):  # a tool with a loop of its own, in a thread, has waited already
            return
        if self._waiting:
            await asyncio.sleep(0)
        while self._patience_s > 0 and not self._is_half_empty:
            began = self._loop.time()
            self._has_room.clear()
            try:
                async with asyncio.timeout(min(GLANCE_S, self._patience_s)):
                    await self._has_room.wait()
            except TimeoutError:
                self._spend(began, is_open=False)
            else:
                self._spend(began, is_open=True)

    @property
    def _is_half_empty(self) -> bool:
        return self._spare <= MAX_REPORTS // 2 and self._bytes <= MAX_BYTES // 2

    def _has_room_for(self, size: int) -> bool:
        return not self._spare or (self._spare < MAX_REPORTS and self._bytes + size <= MAX_BYTES)

    def _spend(self, began: float, *, is_open: bool) -> None:
        self._patience_s = self._patience_s - (self._loop.time() - began) if is_open else 0.0

    def _wake(self) -> None:
        self._opened.notify_all()
        if is_on(self._loop):
            self._has_room.set()

    def _drop_oldest(self) -> None:
        dropped = next(each for each in self._waiting if not each.is_vital)
        self._waiting.remove(dropped)
        self._count(dropped, -1)

    def _count(self, waiting: Waiting, sign: int) -> None:
        if not waiting.is_vital:
            self._spare += sign
            self._bytes += sign * waiting.draft.size
