"""A connection of a client over TLS: it has its place and its deadline before the handshake.

The event loop can do the handshake itself. But then a client that never finishes one is counted nowhere, and
a few thousand of them take every descriptor that the process has.
"""

from __future__ import annotations

import asyncio
from ssl import SSLContext
from typing import Final

from portbook.doors.http.server.connection import ServerConnection
from portbook.doors.http.server.deadlines import Phase
from portbook.doors.http.server.open_connections import OpenConnections
from portbook.executors.eager_task import start_now

__all__ = ["TlsConnection"]

_TASK: Final = "portbook-handshake"


class TlsConnection(ServerConnection):
    """One connection over TLS."""

    def __init__(self, shared: OpenConnections, context: SSLContext) -> None:
        super().__init__(shared)
        self._context = context
        self._securing: asyncio.Task[None] | None = None
        self._is_secure = False
        self._early = b""
        """What the client sent in one piece with the end of the handshake."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place and begin the handshake, or be turned away without a word."""
        if self._is_admitted(transport):
            # At once, so that no byte of the handshake is read as one of a request.
            self._securing = start_now(self._secure(), _TASK)
        else:
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Read on, once there is a way to answer."""
        if self._is_secure:
            super().data_received(data)
        else:
            self._early += data

    async def _secure(self) -> None:
        plain, seconds = self._transport, self._shared.deadlines.head_s
        loop = asyncio.get_running_loop()
        try:
            transport = await loop.start_tls(
                plain, self, self._context, server_side=True, ssl_handshake_timeout=seconds
            )
        except OSError:  # the client left, took too long, or does not speak TLS
            transport = None
        if transport is None or plain.is_closing() or self._state.phase is Phase.CLOSING:
            plain.abort()
            self.connection_lost(None)  # nobody else says so of a connection without its handshake
            return
        self._use(transport)
        self._is_secure = True
        self._state.enter(Phase.FIRST_BYTE)
        if self._early:
            early, self._early = self._early, b""
            super().data_received(early)
