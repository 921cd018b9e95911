"""A Unix or TCP socket: every connection is a stream of lines, served by a door of its own.

A Unix socket is made for its owner alone, and never wider than that, not even for a moment. A socket that a
process left behind is taken over; one that somebody listens on, or a file that is none, is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

__all__ = ["ListeningDoor", "Stream", "listen_tcp", "listen_unix"]

# Connections beyond this many wait to be accepted; each may hold a message of up to a mebibyte.
_MAX_CONNECTIONS: Final = 128

# When the process has no descriptor left: somebody has to close one first.
_PAUSE_S: Final = 0.05


class Stream(Protocol):
    """A door to one connection."""

    async def serve(self) -> None:
        """Answer until the stream ends.

        Raises `BrokenPipeError` where nobody reads the answers any more.
        """
        ...

    def stop(self) -> None:
        """Finish what is under way and take no more."""
        ...


class ListeningDoor:
    """Accepts connections, and serves each by what `open_stream` makes of its descriptor."""

    def __init__(self, listener: socket.socket, open_stream: Callable[[int], Stream]) -> None:
        self._listener = listener
        self._open_stream = open_stream
        self._streams: dict[asyncio.Task[None], Stream] = {}
        self._accepting: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Serve connections until stopped; then finish what they have under way."""
        self._listener.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())
        with contextlib.suppress(asyncio.CancelledError):
            await self._accepting
        await asyncio.gather(*self._streams, return_exceptions=True)
        self._listener.close()

    def stop(self) -> None:
        """Accept no more, and let every connection finish what it has under way."""
        if self._accepting is not None:
            self._accepting.cancel()
        for stream in self._streams.values():
            stream.stop()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while len(self._streams) >= _MAX_CONNECTIONS:
                await asyncio.wait(self._streams, return_when=asyncio.FIRST_COMPLETED)
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            connection.setblocking(True)
            stream = self._open_stream(connection.fileno())
            task = loop.create_task(_serve(stream, connection))
            self._streams[task] = stream
            task.add_done_callback(self._streams.pop)


async def _serve(stream: Stream, connection: socket.socket) -> None:
    with connection, contextlib.suppress(BrokenPipeError):
        await stream.serve()


def listen_tcp(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port`; port 0 takes a free one.

    Raises `OSError` where that is not possible.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host} port {port}: {error.strerror}") from None


def listen_unix(path: Path) -> socket.socket:
    """Return a socket that listens at `path`, which only its owner may use.

    Raises `OSError` where that is not possible, because something else is there for example.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        _remove_stale(path)
        listener.bind(str(path))
        listener.listen()
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"{path}: cannot listen there: {error.strerror or error}") from None
    finally:
        os.umask(mask)
    return listener


def _remove_stale(path: Path) -> None:
    """Remove a socket that nobody listens on."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "there is something else")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise OSError(errno.EADDRINUSE, "somebody listens there already")
