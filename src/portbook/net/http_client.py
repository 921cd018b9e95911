"""A small HTTP/1.1 client for gateways, with a pool of connections.

What it does not do, on purpose: follow redirects, read proxies from the environment, decompress, keep
cookies. Deadlines are the caller's. A request that is cancelled, or late, closes its connection.

`target_of_redirect` says where its users may follow a redirect to.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urljoin

from portbook.net.destinations import BadDestination, Destination, Destinations, parse_url
from portbook.net.dns_and_dial import Dialler, NotPermitted, Unreachable, Untrusted
from portbook.net.http_connection import BodySink, Broken, HttpConnection, Response, SentRequest
from portbook.net.taskless_waits import SharedTimer, TasklessFuture, TimeLimited

__all__ = [
    "MAX_REDIRECTS",
    "REDIRECTS",
    "ConnectionPool",
    "HttpClient",
    "HttpRequest",
    "Sendings",
    "target_of_redirect",
]

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


# The connections to one destination: those that are idle, and the requests that wait for one.
#
# Where no further connection may be opened, requests wait in the order in which they came. The first one is
# sent on the next connection that becomes free, as soon as it is: nobody has to wake up for that.

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


# Where a redirect may be followed to: the same scheme, host and port, and nowhere else.

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# The statuses that name a different address for the same request.
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# The most redirects that are followed for one request.
MAX_REDIRECTS: Final = 5


def target_of_redirect(response: Response, here: Destination, target: str) -> str | None:
    """Return where a redirect of the request for `target` leads; None where that is a different destination.

    A location may be relative to the request (RFC 9110, 10.2.2).
    """
    location = response.headers.get(b"location", b"").decode("latin-1")
    if location and not location.startswith("//") and not _SCHEME.match(location):
        location = urljoin(f"{here.scheme}://{here.authority}{target}", location)
    try:
        url = parse_url(location)
    except BadDestination:
        return None
    if url.destination != here:
        return None
    return f"{url.path or '/'}{'?' + url.query if url.query else ''}"
