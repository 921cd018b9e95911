"""`HttpServer`: serves the routes on its sockets until it is stopped."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final

from portbook.doors.http.router import Router
from portbook.doors.http.server.admission import ConnectionLimits
from portbook.doors.http.server.connection import ServerConnection
from portbook.doors.http.server.deadlines import Deadlines
from portbook.doors.http.server.listeners import with_descriptors
from portbook.doors.http.server.open_connections import OpenConnections
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.doors.http.server.tls_connection import TlsConnection

__all__ = ["HttpServer", "ServerOptions"]

# A shutdown waits this long for answers that are still being sent.
_GRACE_S: Final = 40.0

_BACKLOG: Final = 2048


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server treats its clients."""

    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    deadlines: Deadlines = field(default_factory=Deadlines)
    trusted_proxies: tuple[str, ...] = ()
    tls: SSLContext | None = None
    grace_s: float = _GRACE_S


class HttpServer:
    """Serves one set of routes."""

    def __init__(
        self,
        router: Router,
        listeners: Sequence[socket.socket],
        options: ServerOptions | None = None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve `router` on `listeners`; `on_stop` ends streams that would last."""
        self._router = router
        self._listeners = listeners
        self._options = options or ServerOptions()
        self._on_stop = on_stop
        self._stopping = asyncio.Event()
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
        )
        servers = [await self._listen(listener, shared) for listener in self._listeners]
        try:
            await self._stopping.wait()
        finally:
            for server in servers:
                server.close()
            shared.stop()
            self._on_stop()
            await shared.emptied(options.grace_s)

    def stop(self) -> None:
        """Take no more connections and finish requests in flight."""
        self._stopping.set()

    async def _listen(self, listener: socket.socket, shared: OpenConnections) -> asyncio.Server:
        loop, tls = asyncio.get_running_loop(), self._options.tls

        def connect() -> ServerConnection:
            return ServerConnection(shared)

        if listener.family == socket.AF_UNIX:
            return await loop.create_unix_server(connect, sock=listener, backlog=_BACKLOG)
        if tls is not None:
            return await loop.create_server(
                lambda: TlsConnection(shared, tls), sock=listener, backlog=_BACKLOG
            )
        return await loop.create_server(connect, sock=listener, backlog=_BACKLOG)
