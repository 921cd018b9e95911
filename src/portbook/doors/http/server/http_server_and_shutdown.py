"""`HttpServer`: serves the routes on its sockets until it is stopped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final, Protocol

from portbook.doors.http.router import Router
from portbook.doors.http.server.connection import ServerConnection
from portbook.doors.http.server.connection_limits_deadlines_and_overload import (
    ConnectionLimits,
    Deadlines,
    with_descriptors,
)
from portbook.doors.http.server.listeners_of_workers import ConnectionTally, SharedListener
from portbook.doors.http.server.open_connections import OpenConnections
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.doors.http.server.tls import TlsConnection

__all__ = ["HttpServer", "ServerOptions", "SessionCalls"]

# A shutdown waits this long for calls that run, and for answers that are still being sent.
_GRACE_S: Final = 40.0

# Before that is over, what clients were asked fails: the calls that wait for it are answered in this time.
_LAST_WORDS_S: Final = 1.0

# So long, a server that a newer one replaces waits for the next request of each connection.
_LINGER_S: Final = 2.0

_BACKLOG: Final = 2048


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server treats its clients."""

    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    deadlines: Deadlines = field(default_factory=Deadlines)
    trusted_proxies: tuple[str, ...] = ()
    tls: SSLContext | None = None
    grace_s: float = _GRACE_S
    tally: ConnectionTally | None = None
    """Where further processes listen at the same sockets: how many connections each of them has."""
    has_peers: bool = False
    """Whether other processes serve the same clients when this one is stopped."""


class SessionCalls(Protocol):
    """Calls that go on when their client disconnects."""

    def await_answers(self) -> None:
        """Let what was asked of clients be answered after `on_stop`, at a different process."""
        ...

    def fail_questions(self) -> None:
        """Give up what was asked of clients and is not answered."""
        ...

    async def calls_ended(self, seconds: float) -> None:
        """Return when none runs, or after `seconds`."""
        ...

    def give_up_waiting(self) -> None:
        """Give up calls that wait for what runs without them: all clients have left."""
        ...


class HttpServer:
    """Serves one set of routes."""

    def __init__(
        self,
        router: Router,
        listeners: Sequence[socket.socket],
        options: ServerOptions | None = None,
        on_stop: Callable[[], None] = lambda: None,
        calls: SessionCalls | None = None,
    ) -> None:
        """Serve `router` on `listeners`; `on_stop` ends streams that would last; `calls` are waited for."""
        self._router = router
        self._listeners = listeners
        self._options = options or ServerOptions()
        self._on_stop = on_stop
        self._calls = calls
        self._stopping = asyncio.Event()
        self._is_replaced = False
        self._shared: OpenConnections | None = None

    @property
    def connections(self) -> int:
        """Return how many connections are open."""
        return 0 if self._shared is None else len(self._shared)

    async def serve(self) -> None:
        """Answer requests until stopped, then finish those in flight."""
        options = self._options
        self._shared = shared = OpenConnections(
            self._router,
            with_descriptors(options.limits),
            options.deadlines,
            PeerAddresses(options.trusted_proxies),
            on_count=None if options.tally is None else options.tally.set,
        )
        close = [await self._listen(listener, shared) for listener in self._listeners]
        try:
            await self._stopping.wait()
        finally:
            for each in close:
                await each()
            if self._is_replaced:
                await shared.retire(_LINGER_S)
            shared.stop()
            await self._finish(shared)

    async def _finish(self, shared: OpenConnections) -> None:
        """Wait for the calls in flight, as long as a shutdown may last."""
        calls, grace_s, loop = self._calls, self._options.grace_s, asyncio.get_running_loop()
        if calls is None:
            self._on_stop()
            await shared.emptied(grace_s)
            return
        if self._is_replaced or self._options.has_peers:
            calls.await_answers()
        self._on_stop()
        until = loop.time() + grace_s
        giving_up = loop.call_later(max(0.0, grace_s - _LAST_WORDS_S), calls.fail_questions)
        try:
            await shared.emptied(grace_s)
            calls.give_up_waiting()
            await calls.calls_ended(until - loop.time())
        finally:
            giving_up.cancel()

    def stop(self) -> None:
        """Take no more connections and finish requests in flight."""
        self._is_replaced = False
        if self._stopping.is_set() and self._calls is not None and not self._options.has_peers:
            self._calls.fail_questions()  # the newer server ends, too: nobody can answer
        self._stopping.set()

    def retire(self) -> None:
        """Do the same for a newer server at this socket: what a client is about to send is answered, too."""
        self._is_replaced = True
        self._stopping.set()

    async def _listen(
        self, listener: socket.socket, shared: OpenConnections
    ) -> Callable[[], Awaitable[None]]:
        """Take connections; return what ends that."""
        loop, tls, tally = asyncio.get_running_loop(), self._options.tls, self._options.tally

        def connect() -> ServerConnection:
            if tls is not None and listener.family != socket.AF_UNIX:
                return TlsConnection(shared, tls)
            return ServerConnection(shared)

        if tally is not None:
            return SharedListener(listener, connect, tally).close
        if listener.family == socket.AF_UNIX:
            server = await loop.create_unix_server(connect, sock=listener, backlog=_BACKLOG)
        else:
            server = await loop.create_server(connect, sock=listener, backlog=_BACKLOG)

        async def close() -> None:
            server.close()

        return close
