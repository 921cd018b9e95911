"""`SharedListener`: takes connections from a socket at which further workers listen.

There is one queue of connections for all workers. Whoever of them is free takes the next one, so none is lost
in the queue of a worker that ends. Left to chance, a burst of connections goes to the worker that wakes up
first. So a worker that has more connections than a different one waits a moment before it takes the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Final

from portbook.doors.http.server.connection_tally import ConnectionTally

__all__ = ["SharedListener"]

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
