"""Sockets that listen for HTTP: at an address and a port, or at a path."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import resource
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from portbook.doors.http.server.connection_limits import ConnectionLimits, ConnectionTally
from portbook.text.late_pattern import late_pattern

__all__ = ["SharedListener", "bind", "is_host", "is_loopback", "with_descriptors"]

_NAME: Final = late_pattern(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9.])?")

# Connections that wait to be accepted.
_BACKLOG: Final = 2048

# Descriptors that are not connections of clients: the log, the store, requests to gateways.
_FURTHER: Final = 256


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


def with_descriptors(wanted: ConnectionLimits) -> ConnectionLimits:
    """Return the limits that this process has descriptors for; it asks the system for more first.

    A connection beyond its descriptors could not even be told that there is no room.
    """
    needed = wanted.most + wanted.reserve + _FURTHER
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    reserve = min(wanted.reserve, soft // 8)
    further = min(_FURTHER, soft // 4)
    return replace(wanted, most=max(soft - reserve - further, 1), reserve=reserve)


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
