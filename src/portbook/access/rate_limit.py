"""How many calls a caller may make: one token bucket per caller, refilled over time. Time is an argument."""

from __future__ import annotations

import math
from collections.abc import Coroutine
from typing import Any, Protocol, TypeAlias

__all__ = ["RateLimit", "Rates", "SecondsToWait"]

_MINUTE = 60.0

SecondsToWait: TypeAlias = int | None
"""How long a caller has to wait; None if its call may go on."""


class RateLimit(Protocol):
    """Counts the calls of each caller, in this process or together with others."""

    @property
    def per_minute(self) -> int | None:
        """Return the limit; None for none."""
        ...

    def take(self, caller: str, tick: float) -> SecondsToWait | Coroutine[Any, Any, SecondsToWait]:
        """Count one call at `tick` seconds; return what asks the store where only that knows.

        What is returned raises `OSError` where the store cannot be used.
        """
        ...


class Rates:
    """Counts the calls of each caller in this process; all callers have the same limit."""

    __slots__ = ("_buckets", "per_minute")

    def __init__(self, per_minute: int | None) -> None:
        self.per_minute = per_minute
        """The limit; None for none."""
        # One per caller. There are few: callers have keys, or are all anonymous.
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, tick: float) -> SecondsToWait:
        """Count one call at `tick` seconds; if it is one too many, return the seconds to wait."""
        if self.per_minute is None:
            return None
        tokens, last = self._buckets.get(caller, (float(self.per_minute), tick))
        rate = self.per_minute / _MINUTE
        tokens = min(float(self.per_minute), tokens + (tick - last) * rate)
        if tokens < 1:
            self._buckets[caller] = (tokens, tick)
            return math.ceil((1 - tokens) / rate)
        self._buckets[caller] = (tokens - 1, tick)
        return None
