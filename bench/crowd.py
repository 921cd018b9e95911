"""A crowd of clients that want nothing: many are silent, and many send a byte a second.

They are there while somebody else is served, and every one of them has to be closed by its deadline.
"""

from __future__ import annotations

import resource
import selectors
import socket
import time
from contextlib import ExitStack
from threading import Event, Thread
from typing import Final, Self

from bench.child import WrongAnswer

__all__ = ["Crowd"]

# What a server allows for a first byte and for a head, and twice that.
_DEADLINE_S: Final = 30.0
_PACE_S: Final = 1.0

# A head of a request, a byte at a time; it never ends.
_HEAD: Final = b"GET /livez HTTP/1.1\r\nx-slow: " + b"s" * 1000


class Crowd:
    """Silent and slow connections, as many of each. Closes those that the server left open."""

    def __init__(self, port: int, each: int) -> None:
        self._port = port
        self._each = each
        self._closing = ExitStack()
        self._connections: list[socket.socket] = []
        self._has_ended = Event()
        self._pushing = Thread(target=self._push, daemon=True)

    def __enter__(self) -> Self:
        _allow_descriptors(2 * self._each + 256)
        for _ in range(2 * self._each):
            connection = self._closing.enter_context(socket.create_connection(("127.0.0.1", self._port), 60))
            connection.setblocking(False)
            self._connections.append(connection)
        self._pushing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._pushing.join()
        self._closing.close()

    def wait_until_closed(self) -> None:
        """Return when the server has closed all of them.

        Raises `WrongAnswer` where it has not in time.
        """
        deadline = time.monotonic() + _DEADLINE_S
        with selectors.DefaultSelector() as selector:
            for connection in self._connections:
                selector.register(connection, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(deadline - time.monotonic(), 0))
                if not ready:
                    raise WrongAnswer(f"{len(selector.get_map())} idle or slow clients were not closed")
                for key, _ in ready:
                    if _is_closed(key.fileobj):
                        selector.unregister(key.fileobj)

    def _push(self) -> None:
        """Send the next byte of every slow one, once a second."""
        for byte in _HEAD:
            for connection in self._connections[self._each :]:
                try:
                    connection.send(bytes((byte,)))
                except OSError:  # it is closed
                    continue
            if self._has_ended.wait(_PACE_S):
                return


def _is_closed(connection: object) -> bool:
    assert isinstance(connection, socket.socket)
    try:
        return not connection.recv(1 << 16)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _allow_descriptors(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
