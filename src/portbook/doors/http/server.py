"""The HTTP server under the ASGI application: uvicorn, without its signals, its logging and its lifespan."""

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

# After this many seconds a shutdown no longer waits for answers that are still being sent.
_GRACE_SECONDS = 40

# Far more than any client sends, tokens and cookies included.
_MAX_HEAD_BYTES = 65_536
_HEAD_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)

# How long a head may take to arrive; between two requests, uvicorn itself waits for five seconds.
_HEAD_SECONDS = 15
_AUTHORITY = re.compile(rb"(?:[^:/?#]*://)?([^/?#]*).*", re.DOTALL)
_UPGRADE = re.compile(rb"\r\n[Uu][Pp][Gg][Rr][Aa][Dd][Ee]:[^\r\n]*")

# Connections beyond this many are told that we are busy; each may hold a message of up to a mebibyte.
_MAX_CONNECTIONS = 2048


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port`.

    Raises `OSError` where that is not possible, because something else listens there for example.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(2048)  # from here on nobody who connects is turned away
    except OSError:
        listener.close()
        raise
    return listener


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what is bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _BoundedHead(HttpToolsProtocol):
    """Cuts off a request whose head does not end; the parser itself would take any number of bytes."""

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
            # `GET http://name/path`: the name there is meant, and the parser drops it. No header has a colon.
            self.headers.append((b":authority", _AUTHORITY.sub(rb"\1", self.url)))
        super().on_headers_complete()

    def _await_head(self) -> None:
        """Begin to wait for a head, or to wait anew: whoever never sends one holds a place for nothing."""
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
    """Return a request without the offer to speak something else, which we decline by not hearing it.

    The parser would take the offer for accepted, and the body for that something else.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + body


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # signals belong to whoever runs the doors together


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
        # What a stranger sends must not write our log; what matters is recorded.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._server = _Server(config)
        self._listener = listener
        self._on_stop = on_stop

    async def serve(self) -> None:
        """Answer requests until stopped, then finish those in flight."""
        await self._server.serve([self._listener])

    def stop(self) -> None:
        """Take no more connections and finish what is in flight."""
        self._server.should_exit = True
        self._on_stop()  # streams that nothing else would end
