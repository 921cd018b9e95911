"""The connections to one destination: those that are idle, and the requests that wait for one.

Where no further connection may be opened, requests wait in the order in which they came. The first one is
sent on the next connection that becomes free, as soon as it is: nobody has to wake up for that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from portbook.net.destinations import Destination, Destinations
from portbook.net.http_connection import HttpConnection, Response, SentRequest

__all__ = ["ConnectionPool"]

# Connections to one destination at a time; further calls wait for one, within their deadlines.
_MAX_CONNECTIONS: Final = 128
# A connection is replaced at this age although it works, so that a changed DNS record takes effect.
_MAX_AGE_S: Final = 300.0


class ConnectionPool:
    """The connections to one destination."""

    __slots__ = ("_busy", "_idle", "_queue", "host_line")

    def __init__(self, destination: Destination) -> None:
        self.host_line = f" HTTP/1.1\r\nHost: {destination.authority}\r\n"
        """The end of the first line of every request, and its Host header."""
        self._idle: list[HttpConnection] = []
        self._busy = 0
        """The connections that are in use or being opened."""
        self._queue: deque[SentRequest] = deque()

    def take(self, destinations: Destinations, now: float) -> HttpConnection | None:
        """Return an idle connection that is still usable: the one used last, least likely to be closed."""
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_until > now and _may_carry(connection, destinations, now):
                self._busy += 1
                return connection
            connection.abort()
        return None

    def may_open(self) -> bool:
        """Return whether a further connection may be opened; if so, it counts until it is released."""
        if self._busy >= _MAX_CONNECTIONS:
            return False
        self._busy += 1
        return True

    def add(self, connection: HttpConnection, destinations: Destinations) -> None:
        """Take a connection that was opened, at an address that `destinations` permit."""
        connection.checked_under = destinations
        connection.on_release = self.release

    def queue(self, asked: SentRequest) -> None:
        """Send a request as soon as a connection is free; None as its response means: open one for it."""
        self._queue.append(asked)

    def leave(self, asked: SentRequest) -> None:
        """Send a queued request no more."""
        if asked in self._queue:
            self._queue.remove(asked)
        elif _is_settled(asked.response):  # there was room for it, which it does not take
            self.forgo()

    def release(self, connection: HttpConnection) -> None:
        """Use a connection for the next request, or keep it, if it is usable after an exchange."""
        while self._queue:
            asked = self._queue.popleft()
            if asked.response.done():  # nobody waits for it any more
                continue
            if _may_carry(connection, asked.destinations, connection.loop.time()):
                connection.send(asked)
            else:
                connection.abort()
                asked.response.set_result(None)
            return
        self._busy -= 1
        if connection.is_usable:
            self._idle.append(connection)
        else:
            connection.abort()

    def forgo(self) -> None:
        """Let the next request have the connection that could not be opened, or that nobody needs."""
        while self._queue:
            asked = self._queue.popleft()
            if not asked.response.done():
                asked.response.set_result(None)
                return
        self._busy -= 1

    def close_idle(self, now: float) -> bool:
        """Close connections that have been idle for too long; return whether idle ones are left."""
        idle, self._idle = self._idle, []
        for connection in idle:
            if connection.idle_until > now:
                self._idle.append(connection)
            else:
                connection.abort()
        return bool(self._idle)

    def close(self) -> None:
        """Close every idle connection."""
        while self._idle:
            self._idle.pop().abort()


def _is_settled(response: asyncio.Future[Response | None]) -> bool:
    return response.done() and not response.cancelled() and response.exception() is None


def _may_carry(connection: HttpConnection, destinations: Destinations | None, now: float) -> bool:
    """Return whether the next request may be sent on a connection."""
    return (
        connection.checked_under is destinations  # a changed allowlist may not permit its address
        and connection.opened_at + _MAX_AGE_S > now
        and connection.is_usable
    )
