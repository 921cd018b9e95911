"""Calls that stay open at a server while a client that answers later is asked, within limits."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from functools import partial
from typing import Final

from portbook.errors import Failed, Reason
from portbook.model import JSONObject
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion
from portbook.upstreams.transport import ConnectionLost

__all__ = ["HeldCall", "HeldCalls"]

# As long as a person at a client may take to answer.
_HELD_S: Final = 600.0
_MAX_HELD: Final = 256


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call at a server that waits for answers."""

    connection: UpstreamConnection
    call: RunningCall
    asked: dict[str, UpstreamQuestion]
    requests: dict[str, JSONObject]
    """The questions as the client was asked them, by the keys of their answers."""


class HeldCalls:
    """The held calls of this process; each is taken once, by the round that answers."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[HeldCall, asyncio.TimerHandle]] = {}

    def put(self, held: HeldCall) -> str:
        """Hold a call; return the handle for its next round.

        Raises `Failed` where too many are held.
        """
        if len(self._held) >= _MAX_HELD:
            raise Failed(Reason.NO_ANSWER, details={"why": "too many calls wait for answers"})
        handle = os.urandom(16).hex()
        expires = asyncio.get_running_loop().call_later(_HELD_S, self.drop, handle)
        self._held[handle] = held, expires
        held.call.end_round()
        held.call.result.add_done_callback(partial(self._ended, handle))
        return handle

    def take(self, handle: str) -> HeldCall | None:
        """Return the call of a handle, which then is held no longer; None where it has ended or expired."""
        found = self._held.pop(handle, None)
        if found is None:
            return None
        found[1].cancel()
        return found[0]

    def _ended(self, handle: str, result: asyncio.Future[JSONObject]) -> None:
        # A result waits for the round that takes it; a call whose server is gone has none, and needs no room.
        if not result.cancelled() and isinstance(result.exception(), ConnectionLost):
            self.drop(handle)

    def drop(self, handle: str) -> None:
        """End a call that nobody continues."""
        held = self.take(handle)
        if held is not None:
            held.connection.forget(held.call, is_cancelled=not held.call.result.done())

    def close(self) -> None:
        """End all of them."""
        for handle in list(self._held):
            self.drop(handle)
