"""Whose requests are taken when more have come than one turn of the event loop has time for.

A turn has 10 ms for requests. What has come by then waits, in the order in which it came, and is taken in the
turns that follow. So the loop looks at its sockets again soon, however much there is to do: new connections
are accepted, and health checks, which do not wait here, are answered. Whoever there is no room for is told to
retry.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol

from portbook.doors.http.response import problem
from portbook.doors.http.server.response_writer import CLOSE_LINE, document

__all__ = ["PROMPT", "Turns", "WaitingConnection", "busy"]

# Health checks, which are answered out of turn: an orchestrator that gets no answer restarts a busy server.
PROMPT: Final = tuple(
    b"%b %b " % (method, path) for method in (b"GET", b"HEAD") for path in (b"/livez", b"/readyz", b"/health")
)

# A few dozen calls: short for a health check that waits, long beside what looking at the sockets costs.
_TURN_S: Final = 0.01

# A request that would wait longer than this is better made later: its client is about to give up.
_LATE_S: Final = 10.0

# When a client that was turned away for lack of room may try again.
_RETRY: Final = b"retry-after: 1\r\n"


def busy(date: bytes) -> bytes:
    """Return the response to a client that there is no room for; the connection closes after it."""
    reply = problem(503, "BUSY", "The server is busy. Retry later.", _RETRY)
    return document(reply, CLOSE_LINE, date)


class WaitingConnection(Protocol):
    """A connection whose next request has come."""

    def take_turn(self) -> None:
        """Take a few requests."""
        ...


class Turns:
    """The connections that wait for their turn, the one that has been waiting longest first."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._waiting: deque[tuple[WaitingConnection, float]] = deque()
        self._until = 0.0
        self._is_running = False

    @property
    def is_late(self) -> bool:
        """Return whether those who come now would wait too long."""
        return bool(self._waiting) and self._clock() - self._waiting[0][1] > _LATE_S

    def has_time(self) -> bool:
        """Return whether a request may be taken at once; the first one to ask begins a turn."""
        if self._is_running:
            return not self._waiting and self._clock() < self._until
        self._begin()
        return True

    def wait(self, connection: WaitingConnection) -> None:
        """Take requests of a connection when it is its turn."""
        self._waiting.append((connection, self._clock()))
        if not self._is_running:
            self._begin()

    def _begin(self) -> None:
        self._is_running = True
        self._until = self._clock() + _TURN_S
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        """Begin the next turn with those who wait, each of them once at most."""
        self._is_running = bool(self._waiting)
        if not self._is_running:
            return
        self._begin()
        for _ in range(len(self._waiting)):
            self._waiting.popleft()[0].take_turn()
            if self._clock() >= self._until:
                return
