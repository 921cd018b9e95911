"""A small HTTP/1.1 client for gateways, with a pool of connections.

What it does not do, on purpose: follow redirects, read proxies from the environment, decompress, keep
cookies. Deadlines are the caller's. A request that is cancelled, or late, closes its connection.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, NamedTuple

from portbook.net.connection_pool import ConnectionPool
from portbook.net.destinations import Destination, Destinations
from portbook.net.dial import Dialler, NotPermitted, Unreachable, Untrusted
from portbook.net.http_connection import BodySink, Broken, Response, SentRequest
from portbook.net.taskless_waits import SharedTimer, TasklessFuture, TimeLimited

__all__ = ["HttpClient", "HttpRequest", "Sendings"]

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

    def as_bytes(self, host_line: str) -> bytes:
        """Return the bytes to send; `host_line` is the end of the first line, and the Host header."""
        method, target, headers, body = self.method, self.target, self.headers, self.body
        if body is None:
            return b"%b%b\r\n" % (f"{method} {target}{host_line}".encode("ascii"), headers)
        head = f"{method} {target}{host_line}Content-Length: {len(body)}\r\n".encode("ascii")
        return b"%b%b\r\n%b" % (head, headers, body)


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


class HttpClient:
    """Sends requests over pooled connections."""

    def __init__(self, dialler: Dialler | None = None) -> None:
        self._dialler = dialler or Dialler()
        self._pools: dict[tuple[Destination, Destination | None, Path | None, bool], ConnectionPool] = {}
        self._timer = SharedTimer()
        self._sweep: asyncio.TimerHandle | None = None

    async def send(
        self,
        request: HttpRequest,
        destinations: Destinations,
        sendings: Sendings | None = None,
        sink: BodySink | None = None,
        until: float | None = None,
    ) -> Response:
        """Send `request` where `destinations` permit it, and return the response.

        A body that the `sink` wants goes there as it arrives.

        An idempotent request is retried if a pooled connection closes before a byte of the response arrived
        and `sendings` has a retry left; without `sendings`, one retry is allowed.

        Whoever gives a time `until` which to wait, on the loop's clock, needs no `asyncio.timeout`, and can
        go on outside of a task.

        Raises `NotPermitted`, `Unreachable` or `Untrusted` where nothing was sent, `Broken` or `TooLarge`
        where the response cannot be used, and `TimeoutError` where it is not there in time.
        """
        loop = asyncio.get_running_loop()
        key = (request.destination, request.proxy, request.ca_file, request.is_listening)
        pool = self._pools.get(key) or self._add_pool(request)
        asked = SentRequest(
            request.as_bytes(pool.host_line),
            loop.create_future() if until is None else TasklessFuture(loop=loop),
            request.max_response_bytes,
            request.method == "HEAD",
            sink,
            destinations,
        )
        sendings = sendings or Sendings(1)
        sendings.is_half_answered = False
        connection = pool.take(destinations, loop.time())
        if connection is None and pool.may_open():
            return await self._send_on_new(asked, request, pool, sendings, until)
        if connection is None:
            pool.queue(asked)
        else:
            connection.send(asked)
        try:
            response = await self._response_to(asked, pool, sendings, until)
        except Broken as error:
            if error.was_heard or not request.is_idempotent or not sendings.take():
                raise
            return await self._send_again(asked, request, pool, sendings, until, error)
        if response is None:
            return await self._send_on_new(asked.again(), request, pool, sendings, until)
        return response

    async def _send_again(
        self,
        asked: SentRequest,
        request: HttpRequest,
        pool: ConnectionPool,
        sendings: Sendings,
        until: float | None,
        broken: Broken,
    ) -> Response:
        """Send a request after a connection broke: on a new one, or on the next that becomes free."""
        asked = asked.again()
        if not pool.may_open():
            pool.queue(asked)
            response = await self._response_to(asked, pool, sendings, until)
            if response is not None:
                return response
            asked = asked.again()
        try:
            return await self._send_on_new(asked, request, pool, sendings, until)
        except (NotPermitted, Unreachable, Untrusted):  # these would say that nothing was sent
            raise broken from None

    async def _send_on_new(
        self,
        asked: SentRequest,
        request: HttpRequest,
        pool: ConnectionPool,
        sendings: Sendings,
        until: float | None,
    ) -> Response:
        """Send a request on a new connection, for which there is room."""
        opening = self._dialler.connect(
            request.destination, asked.destinations, proxy=request.proxy, ca_file=request.ca_file
        )
        try:
            connection = await (opening if until is None else TimeLimited(opening, until))
        except BaseException:
            pool.forgo()
            raise
        pool.add(connection, asked.destinations)
        connection.send(asked)
        response = await self._response_to(asked, pool, sendings, until)
        assert response is not None  # it did not wait for a connection
        return response

    async def _response_to(
        self, asked: SentRequest, pool: ConnectionPool, sendings: Sendings, until: float | None
    ) -> Response | None:
        """Return the response to a request; None where a connection has to be opened for it."""
        response = asked.response
        if until is not None:
            self._timer.add(response, until)
        try:
            return await response
        except BaseException:  # a coroutine that is closed is one that gives up, too
            sendings.is_half_answered = asked.abandon()
            if not asked.was_sent:
                pool.leave(asked)
            raise
        finally:
            if asked.was_sent:
                sendings.has_begun = True
            if until is not None:
                self._timer.remove(response)
            if self._sweep is None:
                self._sweep = response.get_loop().call_later(_SWEEP_S, self._close_idle)

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
        self._timer.close()
        for pool in self._pools.values():
            pool.close()
        await asyncio.sleep(0)  # transports close in the loop's next iteration

    # -- the pools

    def _add_pool(self, request: HttpRequest) -> ConnectionPool:
        pool = ConnectionPool(request.destination)
        self._pools[(request.destination, request.proxy, request.ca_file, request.is_listening)] = pool
        return pool

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        is_needed = [pool for pool in self._pools.values() if pool.close_idle(now)]
        self._sweep = loop.call_later(_SWEEP_S, self._close_idle) if is_needed else None
