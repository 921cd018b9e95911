"""A small HTTP/1.1 client for gateways, with a pool of connections.

What it does not do, on purpose: follow redirects, read proxies from the environment, decompress, keep
cookies. Deadlines are the caller's: a cancelled request closes its connection.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, NamedTuple

from portbook.net.destinations import Destination, Destinations
from portbook.net.dial import Dialler, Unreachable, Untrusted
from portbook.net.http_connection import BodySink, Broken, HttpConnection, Response
from portbook.net.resolved_addresses import NotPermitted

__all__ = ["HttpClient", "HttpRequest", "Sendings"]

# Connections to one destination at a time; further calls wait for one, within their deadlines.
_MAX_CONNECTIONS: Final = 128
# A connection is replaced at this age although it works, so that a changed DNS record takes effect.
_MAX_AGE_S: Final = 300.0
_SWEEP_S: Final = 1.0


class HttpRequest(NamedTuple):
    """A request, ready to be sent."""

    destination: Destination
    method: str
    target: str
    """The path and the query, encoded."""
    headers: bytes
    """Whole lines with their line ends; without Host and Content-Length."""
    body: bytes | None = None
    is_idempotent: bool = False
    max_response_bytes: int = 1_048_576
    proxy: Destination | None = None
    ca_file: Path | None = None
    is_listening: bool = False
    """Whether its answer has no end of its own: such requests do not take the connections of others."""

    def as_bytes(self) -> bytes:
        """Return the bytes to send."""
        length = "" if self.body is None else f"Content-Length: {len(self.body)}\r\n"
        head = f"{self.method} {self.target} HTTP/1.1\r\nHost: {self.destination.authority}\r\n{length}"
        return b"%b%b\r\n%b" % (head.encode("ascii"), self.headers, self.body or b"")


class Sendings:
    """Whether a call's request was sent, and how many retries are left.

    There is one for each call. Every retry, at any level, is taken from it: together they keep to the number,
    and whether something was sent is known.
    """

    __slots__ = ("has_begun", "is_half_answered", "left")

    def __init__(self, left: int) -> None:
        self.has_begun = False
        """Whether a byte of the request may have been sent, at any attempt."""
        self.is_half_answered = False
        """Whether the latest attempt was given up in the middle of an answer."""
        self.left = left

    def take(self) -> bool:
        """Use one retry; return whether one was left."""
        if self.left <= 0:
            return False
        self.left -= 1
        return True


class _IdleConnection(NamedTuple):
    """An idle connection, and the allowlist under which its address was checked."""

    connection: HttpConnection
    destinations: Destinations


class _Pool:
    """The connections to one destination."""

    __slots__ = ("gate", "idle")

    def __init__(self) -> None:
        self.gate = asyncio.Semaphore(_MAX_CONNECTIONS)
        self.idle: list[_IdleConnection] = []


class HttpClient:
    """Sends requests over pooled connections."""

    def __init__(self, dialler: Dialler | None = None) -> None:
        self._dialler = dialler or Dialler()
        self._pools: dict[tuple[Destination, Destination | None, Path | None, bool], _Pool] = {}
        self._sweep: asyncio.TimerHandle | None = None

    async def send(
        self,
        request: HttpRequest,
        destinations: Destinations,
        sendings: Sendings | None = None,
        sink: BodySink | None = None,
    ) -> Response:
        """Send `request` where `destinations` permit it, and return the response.

        A body that the `sink` wants goes there as it arrives.

        An idempotent request is retried if a pooled connection closes before a byte of the response arrived
        and `sendings` has a retry left; without `sendings`, one retry is allowed.

        Raises `NotPermitted`, `Unreachable` or `Untrusted` where nothing was sent, and `Broken` or `TooLarge`
        where the response cannot be used.
        """
        sendings = sendings or Sendings(1)
        key = (request.destination, request.proxy, request.ca_file, request.is_listening)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = _Pool()
        async with pool.gate:
            broken: Broken | None = None
            kept = self._take(pool, destinations)
            if kept is not None:
                try:
                    return await self._exchange(kept, request, pool, destinations, sendings, sink)
                except Broken as error:
                    if error.was_heard or not request.is_idempotent or not sendings.take():
                        raise
                    broken = error
            try:
                connection = await self._dialler.connect(
                    request.destination, destinations, proxy=request.proxy, ca_file=request.ca_file
                )
            except (NotPermitted, Unreachable, Untrusted):
                if broken is not None:  # these would say that nothing was sent, and something was
                    raise broken from None
                raise
            return await self._exchange(connection, request, pool, destinations, sendings, sink)

    async def probe(
        self,
        destination: Destination,
        destinations: Destinations,
        *,
        proxy: Destination | None = None,
        ca_file: Path | None = None,
    ) -> None:
        """Connect to `destination`, and close the connection unused.

        Raises `NotPermitted`, `Unreachable` or `Untrusted` where it cannot connect.
        """
        connection = await self._dialler.connect(destination, destinations, proxy=proxy, ca_file=ca_file)
        connection.abort()

    async def close(self) -> None:
        """Close every pooled connection."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for pool in self._pools.values():
            while pool.idle:
                pool.idle.pop().connection.abort()
        await asyncio.sleep(0)  # transports close in the loop's next iteration

    async def _exchange(
        self,
        connection: HttpConnection,
        request: HttpRequest,
        pool: _Pool,
        destinations: Destinations,
        sendings: Sendings,
        sink: BodySink | None,
    ) -> Response:
        sendings.has_begun, sendings.is_half_answered = True, False
        try:
            response = await connection.exchange(
                request.as_bytes(),
                max_body=request.max_response_bytes,
                ends_at_head=request.method == "HEAD",
                sink=sink,
            )
        except asyncio.CancelledError:  # as when the time is up
            sendings.is_half_answered = connection.was_heard
            raise
        if connection.is_usable:
            pool.idle.append(_IdleConnection(connection, destinations))
            if self._sweep is None:
                self._sweep = connection.loop.call_later(_SWEEP_S, self._close_idle)
        else:
            connection.abort()
        return response

    # -- the pool

    def _take(self, pool: _Pool, destinations: Destinations) -> HttpConnection | None:
        """Return a pooled connection that is still usable: the one used last, least likely to be closed."""
        now = asyncio.get_running_loop().time()
        while pool.idle:
            connection, checked_under = pool.idle.pop()
            if (
                checked_under is destinations  # a changed allowlist may not permit its address
                and connection.idle_until > now
                and connection.opened_at + _MAX_AGE_S > now
                and connection.is_usable
            ):
                return connection
            connection.abort()
        return None

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        now, is_needed = loop.time(), False
        for pool in self._pools.values():
            kept, pool.idle = pool.idle, []
            for one in kept:
                if one.connection.idle_until > now:
                    pool.idle.append(one)
                    is_needed = True
                else:
                    one.connection.abort()
        self._sweep = loop.call_later(_SWEEP_S, self._close_idle) if is_needed else None
