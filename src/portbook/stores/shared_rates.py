"""`SharedRates`: counts the calls of each caller over all processes that share a store.

Exact counting draws a token for each call, in one transaction. Else a process leases a block of tokens at
once, and asks again once they are used up. What the store has refused is refused without asking until the
time that it named, so that a caller who does not wait costs no writes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, Final

from portbook.access.rate_limit import SecondsToWait
from portbook.stores.connection_clock_and_errors import Connection, database_time
from portbook.stores.store_port import StorePort
from portbook.text.named_tuple import NamedTuple

__all__ = ["SharedRates", "TokenBlocks", "block_size", "draw"]

# The token bucket of a caller that several processes draw from: one number in the store.
#
# The number is the time at which the bucket is full again, in microseconds of the database's clock. An empty
# bucket takes a minute to fill, so the time tells how many tokens are in it, and the bucket fills by itself.
#
# A process draws single tokens, or a block of them at once, which it then gives to calls without asking.
# Tokens of a block that no call takes stay with the process: over any time, calls that pass are at most those
# that one bucket lets pass, and one block for each process.

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


# The bucket of a caller: a full one where there is none yet.
_LOCK: Final = (
    "INSERT INTO rate_bucket (caller, full_at) VALUES (?, 0) "
    "ON CONFLICT (caller) DO UPDATE SET caller = excluded.caller RETURNING full_at"
)
_WRITE: Final = "UPDATE rate_bucket SET full_at = ? WHERE caller = ?"


class TokenBlocks:
    """The tokens that this process has drawn from the store. There is one of it, whatever rules come."""

    def __init__(self, store: StorePort, tick: Callable[[], float]) -> None:
        """Draw from the buckets of `store`; `tick` returns the seconds of the clock that calls go by."""
        self._store = store
        self._tick = tick
        self._held: dict[str, int] = {}
        self._empty_until: dict[str, float] = {}
        """When there may be a token again, by the clock of calls."""
        self._asked: dict[str, asyncio.Future[Drawn]] = {}

    def take(self, caller: str, tick: float | None = None) -> SecondsToWait:
        """Take one of the tokens that are held, at `tick` seconds or now.

        Raises `LookupError` where there is none, and only the store knows whether it has one.
        """
        held = self._held.get(caller, 0)
        if held:
            self._held[caller] = held - 1
            return None
        left_s = self._empty_until.get(caller, 0.0) - (self._tick() if tick is None else tick)
        if left_s <= 0:
            raise LookupError
        return math.ceil(left_s)

    async def refill(self, caller: str, per_minute: int, wanted: int) -> None:
        """Draw a block of tokens; calls that come meanwhile wait for the same block.

        Raises `StoreError` where the store cannot be used.
        """
        asked = self._asked.get(caller)
        if asked is None:
            asked = self._asked[caller] = self._draw(caller, per_minute, wanted)
            asked.add_done_callback(lambda done: self._note(caller, done))
        await asyncio.wait((asked,))  # a call that is cancelled does not take the block from the others
        asked.result()

    async def take_one(self, caller: str, per_minute: int) -> SecondsToWait:
        """Take a token of the store, for one call.

        Raises `StoreError` where the store cannot be used.
        """
        drawn = await self._draw(caller, per_minute, 1)
        if drawn.tokens:
            return None
        self._empty_until[caller] = self._tick() + drawn.wait_s
        return math.ceil(drawn.wait_s)

    def _draw(self, caller: str, per_minute: int, wanted: int) -> asyncio.Future[Drawn]:
        def write(connection: Connection) -> Drawn:
            full_at: int = connection.execute(_LOCK, (caller,)).get
            drawn = draw(full_at, database_time(connection), per_minute, wanted)
            connection.execute(_WRITE, (drawn.full_at, caller))
            return drawn

        # Locked by name, which happens in one order for all that is written together: processes that lock the
        # rows of the same callers in different orders would wait for each other.
        return asyncio.wrap_future(self._store.submit(write, lock=f"rate {caller}"))

    def _note(self, caller: str, done: asyncio.Future[Drawn]) -> None:
        del self._asked[caller]
        if not done.cancelled() and done.exception() is None:
            drawn = done.result()
            self._held[caller] = drawn.tokens
            if not drawn.tokens:
                self._empty_until[caller] = self._tick() + drawn.wait_s


class SharedRates:
    """A limit on the calls of each caller that holds for all processes together."""

    __slots__ = ("_block", "_blocks", "per_minute")

    def __init__(self, blocks: TokenBlocks, per_minute: int, *, is_exact: bool) -> None:
        self._blocks = blocks
        self._block = 1 if is_exact else block_size(per_minute)
        self.per_minute = per_minute

    def take(self, caller: str, tick: float) -> SecondsToWait | Coroutine[Any, Any, SecondsToWait]:
        """Count one call at `tick` seconds; return what asks the store if no token is held."""
        try:
            return self._blocks.take(caller, tick)
        except LookupError:
            return self._ask(caller)

    async def _ask(self, caller: str) -> SecondsToWait:
        if self._block == 1:
            return await self._blocks.take_one(caller, self.per_minute)
        while True:
            await self._blocks.refill(caller, self.per_minute, self._block)
            try:
                return self._blocks.take(caller)
            except LookupError:  # more calls waited than there were tokens
                continue
