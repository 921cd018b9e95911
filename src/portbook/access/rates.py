"""How many calls a caller may make: one token bucket per caller, refilled over time. Time is an argument."""

from __future__ import annotations

import math
from collections.abc import Coroutine
from typing import Any, Final, Protocol, TypeAlias

from portbook.text.named_tuple import NamedTuple

__all__ = ["Drawn", "RateLimit", "Rates", "SecondsToWait", "block_size", "draw"]

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


# The token bucket of a caller that several processes draw from: one number in the store.
#
# The number is the time at which the bucket is full again, in microseconds of the database's clock. An empty
# bucket takes a minute to fill, so the time tells how many tokens are in it, and the bucket fills by itself.
#
# A process draws single tokens, or a block of them at once, which it then gives to calls without asking.
# Tokens of a block that no call takes stay with the process: over any time, calls that pass are at most those
# that one bucket lets pass, and one block for each process.
#
# ; the time is an argument.

_MINUTE_US: Final = 60_000_000
_SECOND: Final = 1_000_000

# A caller at its limit then costs one write in three seconds, and with a few idle processes it still gets
# most of what the limit allows.
_BLOCKS_PER_MINUTE: Final = 20


class Drawn(NamedTuple):
    """What a process got from a bucket."""

    tokens: int
    full_at: int
    """When the bucket is full again, to be stored."""
    wait_s: float
    """How long until there is a token; 0 if some were drawn. No process can make it shorter."""


def block_size(per_minute: int) -> int:
    """Return how many tokens a process draws at once, under a limit of `per_minute` calls."""
    return max(1, per_minute // _BLOCKS_PER_MINUTE)


def draw(full_at: int, now: int, per_minute: int, wanted: int) -> Drawn:
    """Draw up to `wanted` tokens at `now` from a bucket that is full at `full_at`."""
    # A clock that was set back leaves an empty bucket, not one that stays empty for hours.
    level = min(max(full_at, now), now + _MINUTE_US)
    tokens = min(wanted, (now + _MINUTE_US - level) * per_minute // _MINUTE_US)
    if not tokens:
        missing = level + -(-_MINUTE_US // per_minute) - (now + _MINUTE_US)
        return Drawn(0, level, missing / _SECOND)
    return Drawn(tokens, level + tokens * _MINUTE_US // per_minute, 0.0)
