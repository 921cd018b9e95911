"""The HTTP server under the ASGI application: uvicorn, without its signals, logging and lifespan."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Generator

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from portbook.doors.http.asgi import Application

__all__ = ["HttpServer", "bind", "is_loopback"]

# A shutdown waits this long for answers that are still being sent.
_GRACE_SECONDS = 40

# Far more than clients send, tokens and cookies included.
_MAX_HEAD_BYTES = 65_536
_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)

# How long a head may take to arrive; between two requests, uvicorn waits five seconds.
_HEAD_SECONDS = 15
_AUTHORITY = re.compile(rb"(?:[^:/?#]*://)?([^/?#]*).*", re.DOTALL)
_UPGRADE = re.compile(rb"\r\n[Uu][Pp][Gg][Rr][Aa][Dd][Ee]:[^\r\n]*")

# Connections over this limit get 503; each may hold a message of up to a mebibyte.
_MAX_CONNECTIONS = 2048


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port`.

    Raises `OSError` where it cannot listen, for example because the port is in use.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(2048)  # from here on, no connection is refused
    except OSError:
        listener.close()
        raise
    return listener


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _BoundedHead(HttpToolsProtocol):
    """Limits the size and the time of a request's head; the parser has no limit of its own."""

    _head_bytes = 0
    _is_in_head = True
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self._is_in_head = True
        self._await_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._head_came()
        if not self.url.startswith(b"/"):
            # `GET http://name/path`: the parser drops this name, and it counts. No real header has a colon.
            self.headers.append((b":authority", _AUTHORITY.sub(rb"\1", self.url)))
        super().on_headers_complete()

    def _await_head(self) -> None:
        """Start, or restart, the deadline for a head: a silent client must not hold a connection."""
        self._head_came()
        self._deadline = asyncio.get_running_loop().call_later(_HEAD_SECONDS, self._give_up)

    def _head_came(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._is_in_head and b"pgrade" in data:
            data = _without_upgrade(data)
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """Return a request without its Upgrade header, which this server always declines.

    The parser would take the upgrade as accepted, and the body as the new protocol.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + body


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # the command that runs all doors handles signals


class HttpServer:
    """Serves one application on one socket."""

    def __init__(
        self, app: Application, listener: socket.socket, on_stop: Callable[[], None] = lambda: None
    ) -> None:
        config = uvicorn.Config(
            app,  # pyright: ignore[reportArgumentType] # uvicorn's ASGI types are narrower than the specification's
            http=_BoundedHead,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        # Clients must not be able to fill the log; calls have records.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._server = _Server(config)
        self._listener = listener
        self._on_stop = on_stop

    async def serve(self) -> None:
        """Answer requests until stopped, then finish those in flight."""
        await self._server.serve([self._listener])

    def stop(self) -> None:
        """Take no more connections and finish requests in flight."""
        self._server.should_exit = True
        self._on_stop()  # ends open streams, which would last
