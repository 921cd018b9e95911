"""Sockets that listen for HTTP: at an address and a port, or at a path."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import Callable
from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["ConnectionTally", "SharedListener", "bind", "create_tally", "is_host", "is_loopback"]

_NAME: Final = late_pattern(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9.])?")

# Connections that wait to be accepted.
_BACKLOG: Final = 2048


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port`.

    Raises `OSError` where it cannot listen, for example because the port is in use.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)  # from here on, no connection is refused
    except OSError:
        listener.close()
        raise
    return listener


def is_host(host: str) -> bool:
    """Return whether `host` can be an address, or a name of this machine."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # What looks like an address and is none would be asked of the name servers.
        return _NAME.fullmatch(host) is not None and not host.replace(".", "").isdigit()
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# `SharedListener`: takes connections from a socket at which further workers listen.
#
# There is one queue of connections for all workers. Whoever of them is free takes the next one, so none is
# lost in the queue of a worker that ends. Left to chance, a burst of connections goes to the worker that
# wakes up first. So a worker that has more connections than a different one waits a moment before it takes
# the next.

# How long a worker leaves a connection to those that have fewer. If they are all busy, it is soon its own.
_COURTESY_S: Final = 0.004

# How many it takes after that at once: all workers are busy, and connections wait.
_AT_ONCE: Final = 4

# Wait between attempts when the process has no descriptor left.
_PAUSE_S: Final = 0.05


class SharedListener:
    """Takes connections until it is closed."""

    def __init__(
        self, listener: socket.socket, connect: Callable[[], asyncio.Protocol], tally: ConnectionTally
    ) -> None:
        """Serve each connection by the protocol that `connect` returns. In the event loop."""
        self._listener = listener
        self._connect = connect
        self._tally = tally
        self._loop = asyncio.get_running_loop()
        self._paused: asyncio.TimerHandle | None = None
        self._connecting: set[asyncio.Task[None]] = set()
        self._has_waited = False
        listener.setblocking(False)
        tally.set(0)
        self._loop.add_reader(listener, self._take)

    async def close(self) -> None:
        """Take no more connections, and return when those that were taken are being served."""
        self._tally.leave()
        if self._paused is None:
            self._loop.remove_reader(self._listener)
        else:
            self._paused.cancel()
        self._listener.close()
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _take(self) -> None:
        if not self._has_waited and self._tally.is_ahead():
            self._has_waited = True
            self._pause(_COURTESY_S)
            return
        count, self._has_waited = _AT_ONCE if self._has_waited else 1, False
        for _ in range(count):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return  # a different worker was quicker, or the client has left
            except OSError:
                self._pause(_PAUSE_S)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._serve(connection), name="portbook-accepted")
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the client has left
            await self._loop.connect_accepted_socket(self._connect, connection)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._paused = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._paused = None
        self._loop.add_reader(self._listener, self._take)


# `ConnectionTally`: how many connections each worker has open, in memory that all of them share.
#
# Each worker writes its own place and reads the others'. A place is one aligned number, which is read and
# written as a whole: there is nothing to lock. A number that is a moment old does no harm.

# A place whose worker takes no connections: it is starting, ending, or was never there.
_ABSENT: Final = -1

_NUMBER: Final = struct.calcsize("i")


def create_tally(places: int) -> int:
    """Return the descriptor of memory for so many workers."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("portbook-connections")
    else:  # macOS: a file without a name does the same
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.write(descriptor, struct.pack(f"{places}i", *[_ABSENT] * places))
    return descriptor


class ConnectionTally:
    """The tally, as the worker at one place uses it; or the process that supervises, at no place."""

    def __init__(self, descriptor: int, place: int | None = None) -> None:
        """Map the memory; the descriptor is no longer needed."""
        size = os.fstat(descriptor).st_size
        self._memory = mmap.mmap(descriptor, size)
        self._counts = memoryview(self._memory).cast("i")
        self._place = place
        self.places = size // _NUMBER

    def set(self, count: int) -> None:
        """Say how many connections this worker has open."""
        if self._place is not None:
            self._counts[self._place] = count

    def leave(self) -> None:
        """Say that this worker takes no more connections."""
        self.set(_ABSENT)
        self._place = None

    def clear(self, place: int) -> None:
        """Say that the worker at a place has ended."""
        self._counts[place] = _ABSENT

    def is_ahead(self) -> bool:
        """Return whether a different worker that takes connections has fewer than this one."""
        if self._place is None:
            return False
        own = self._counts[self._place]
        return any(_ABSENT < count < own for count in self._counts)
