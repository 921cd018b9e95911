"""Time that a test moves, and names and random bytes that count: the same test leaves the same bytes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Final

from portbook.clock import later
from portbook.model import IdBytes

__all__ = ["CountingBytes", "CountingIds", "FixedClock"]

_START: Final = "2026-01-01T00:00:00.000Z"


class FixedClock:
    """A clock that moves only with `advance`: then approvals expire and rate limits refill."""

    def __init__(self, start: str = _START) -> None:
        self._start = start
        self._passed_s = 0.0

    def now(self) -> str:
        """Return the wall time as ISO 8601 in UTC, with milliseconds."""
        return later(self._start, self._passed_s)

    def tick(self) -> float:
        """Return the seconds that have passed since the start."""
        return self._passed_s

    def advance(self, seconds: float) -> None:
        """Move the clock forward by so many `seconds`.

        Raises `ValueError` for less than none, since time never goes back, and for what is no finite number.
        """
        if not math.isfinite(seconds):
            raise ValueError(f"a clock cannot go on by {seconds} seconds")
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} seconds")
        self._passed_s += seconds


class CountingIds:
    """Names that count, in the form of those that a server gives."""

    __slots__ = ("_count",)
    deterministic = False

    def __init__(self) -> None:
        self._count = 0

    def name(self, content: bytes) -> IdBytes:
        """Return the next names; the content does not matter."""
        del content
        return next(self.drawn)

    @property
    def drawn(self) -> Iterator[IdBytes]:
        """Return the next names."""
        while True:
            yield self._next()

    def _next(self) -> IdBytes:
        self._count = count = self._count + 1
        return b"00000000-0000-4000-a000-%012x" % count, b"%032x" % count, b"%016x%016x" % (count, 0)


class CountingBytes:
    """Bytes in the place of random ones: no two drawings are alike, and every run draws the same."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def draw(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        self._count += 1
        return hashlib.shake_128(b"portbook.testing %d" % self._count).digest(size)
