"""The token bucket of a caller that several processes draw from: one number in the store.

The number is the time at which the bucket is full again, in microseconds of the database's clock. An empty
bucket takes a minute to fill, so the time tells how many tokens are in it, and the bucket fills by itself.

A process draws single tokens, or a block of them at once, which it then gives to calls without asking. Tokens
of a block that no call takes stay with the process: over any time, calls that pass are at most those that one
bucket lets pass, and one block for each process.

Pure: no I/O; the time is an argument.
"""

from __future__ import annotations

from typing import Final

from portbook.text.named_tuple import NamedTuple

__all__ = ["Drawn", "block_size", "draw"]

_MINUTE: Final = 60_000_000
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
    level = min(max(full_at, now), now + _MINUTE)
    tokens = min(wanted, (now + _MINUTE - level) * per_minute // _MINUTE)
    if not tokens:
        missing = level + -(-_MINUTE // per_minute) - (now + _MINUTE)
        return Drawn(0, level, missing / _SECOND)
    return Drawn(tokens, level + tokens * _MINUTE // per_minute, 0.0)
