"""The HTTP server under the ASGI application: uvicorn, without its signals, its logging and its lifespan."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Generator

import uvicorn

from portbook.doors.asgi import App

__all__ = ["HttpServer", "bind", "is_loopback"]

# After this many seconds a shutdown no longer waits for answers that are still being sent.
_GRACE_SECONDS = 60

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


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # signals belong to whoever runs the doors together


class HttpServer:
    """Serves one application on one socket."""

    def __init__(self, app: App, listener: socket.socket) -> None:
        config = uvicorn.Config(
            app,  # pyright: ignore[reportArgumentType] # uvicorn's ASGI types are narrower than the specification's
            http="httptools",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        self._server = _Server(config)
        self._listener = listener

    async def serve(self) -> None:
        """Answer requests until stopped, then finish those in flight."""
        await self._server.serve([self._listener])

    def stop(self) -> None:
        """Take no more connections and finish what is in flight."""
        self._server.should_exit = True
