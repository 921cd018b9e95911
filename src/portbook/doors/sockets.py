"""Unix and TCP sockets: every connection is a stream of lines, served by a door of its own.

Only its owner may use a Unix socket, from the moment it exists. A stale socket of an ended process is
replaced; a socket with a listener, or a file that is not a socket, is left alone.

At the limit of connections, the one that was idle longest is closed for the next: idle clients cannot keep
new ones out.
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

from portbook.doors.stdio import Reader, Writer

__all__ = ["LineStream", "ListeningDoor", "UnixSocket", "listen_tcp"]

# Connections at once; each may hold a message of up to a mebibyte.
_MAX_CONNECTIONS: Final = 128

# How long a connection that has to close may take to finish its calls: longer than any backend's deadline.
_GRACE_S: Final = 10.0

# Wait between attempts when the process has no descriptor left.
_PAUSE_S: Final = 0.05


class LineStream(Protocol):
    """A door to one connection."""

    async def serve(self) -> None:
        """Answer until the stream ends.

        Raises `BrokenPipeError` where the client has stopped reading.
        """
        ...

    def stop(self) -> None:
        """Finish the calls that are running and read no more."""
        ...


class _HeardReader(Reader):
    """A reader that knows when it last read something."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._clock = asyncio.get_running_loop().time
        self.heard_at = self._clock()

    def _take(self) -> bytes:
        self.heard_at = self._clock()
        return super()._take()


class _Connection:
    """One connection while it is served."""

    def __init__(
        self, connection: socket.socket, open_stream: Callable[[Reader, Writer], LineStream]
    ) -> None:
        self._connection = connection
        self._reader = _HeardReader(connection.fileno())
        self._writer = Writer(connection.fileno())
        self._stream = open_stream(self._reader, self._writer)
        self.stop = self._stream.stop

    @property
    def heard_at(self) -> float:
        """Return when the client last sent something."""
        return self._reader.heard_at

    async def serve(self) -> None:
        """Serve until it ends for any reason; then close it."""
        with self._connection:
            try:
                # A network connection has more ways to fail than a pipe: no route, no response.
                with contextlib.suppress(OSError):
                    await self._stream.serve()
            finally:
                self._reader.close()
                self._writer.close()


class ListeningDoor:
    """Accepts connections, and serves each with the door that `open_stream` returns."""

    def __init__(self, listener: socket.socket, open_stream: Callable[[Reader, Writer], LineStream]) -> None:
        self._listener = listener
        self._open_stream = open_stream
        self._streams: dict[asyncio.Task[None], _Connection] = {}
        self._accepting: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Serve connections until stopped; then finish their calls."""
        self._listener.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())
        with contextlib.suppress(asyncio.CancelledError):
            await self._accepting
        await asyncio.gather(*self._streams, return_exceptions=True)
        self._listener.close()

    def stop(self) -> None:
        """Accept no more connections, and let each finish its calls."""
        if self._accepting is not None:
            self._accepting.cancel()
        for stream in self._streams.values():
            stream.stop()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            try:
                while len(self._streams) >= _MAX_CONNECTIONS:
                    await self._make_room()
                connection.setblocking(True)
                served = _Connection(connection, self._open_stream)
            except OSError:  # no descriptor left to watch it with
                connection.close()
                continue
            except BaseException:
                connection.close()
                raise
            task = loop.create_task(served.serve())
            self._streams[task] = served
            task.add_done_callback(self._streams.pop)

    async def _make_room(self) -> None:
        """Close the connection that was idle longest, or wait until any connection ends."""
        silent = min(self._streams, key=lambda task: self._streams[task].heard_at)
        self._streams[silent].stop()
        ended, _ = await asyncio.wait(self._streams, timeout=_GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        if not ended:  # it does not read its answers either
            silent.cancel()
            await asyncio.wait([silent])


def listen_tcp(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port`; port 0 picks a free one.

    Raises `OSError` where it cannot listen.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host} port {port}: {error.strerror}") from None


class UnixSocket:
    """A socket that listens at a path; only its owner may use it."""

    def __init__(self, path: Path) -> None:
        """Listen at `path`.

        Raises `OSError` where it cannot listen, for example because a file is there.
        """
        self._path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            _remove_stale(path)
            self.listener.bind(str(path))
            self._made = _identity(path)
            self.listener.listen()
        except OSError as error:
            self.listener.close()
            raise OSError(error.errno, f"{path}: cannot listen there: {error.strerror or error}") from None
        finally:
            os.umask(mask)

    def remove(self) -> None:
        """Stop listening, and remove the file at the path if it is still this socket."""
        self.listener.close()
        with contextlib.suppress(OSError):
            if _identity(self._path) == self._made:
                self._path.unlink()


def _identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def _remove_stale(path: Path) -> None:
    """Remove a socket without a listener."""
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
