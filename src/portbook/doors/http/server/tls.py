"""TLS: a certificate and its key, read from files, and read again when they have changed."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from ssl import SSLContext
from typing import Final

from portbook.doors.http.server.connection import ServerConnection
from portbook.doors.http.server.connection_limits_deadlines_and_overload import Phase
from portbook.doors.http.server.open_connections import OpenConnections
from portbook.executors.coroutines import start_now

__all__ = ["BadCertificate", "ServerCertificate", "TlsConnection"]


class BadCertificate(ValueError):
    """Files that are not a certificate and its key; the message names the files, and quotes nothing."""


class ServerCertificate:
    """The certificate that clients are shown."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read both files, in PEM form; the first may hold further certificates of the chain.

        Raises `BadCertificate` where they cannot be used.
        """
        self._certificate = certificate
        self._key = key
        self.context = self._read()

    def reload(self) -> None:
        """Read the files again, for connections that begin from now on.

        Raises `BadCertificate` where they cannot be used; then the certificate stays as it is.
        """
        self._read()
        self._load(self.context)

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            # Asked for a password, OpenSSL would wait at the terminal.
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except _EncryptedKey:
            raise BadCertificate(f"{self._key}: the key is encrypted; decrypt it first") from None
        except ssl.SSLError:
            raise BadCertificate(
                f"{self._certificate} and {self._key}: not a certificate and its key in PEM form"
            ) from None
        except OSError as error:
            raise BadCertificate(f"{error.filename or self._certificate}: {error.strerror}") from None


class _EncryptedKey(Exception):
    pass


def _no_password() -> str:
    raise _EncryptedKey


# A connection of a client over TLS: it has its place and its deadline before the handshake.
#
# The event loop can do the handshake itself. But then a client that never finishes one is counted nowhere,
# and a few thousand of them take every descriptor that the process has.

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
