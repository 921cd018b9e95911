"""What waits to be read by all clients together: it is bounded, whatever each of them may have.

An answer that is there whole is held until its client has read it. A client that stops reading has a
deadline; until then its answer takes memory. If all of these answers take too much, the connection that has
been waiting longest is closed. Its call has ended and is recorded.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Backlog", "StuckConnection"]


class StuckConnection(Protocol):
    """A connection whose client has much to read."""

    def abort(self) -> None:
        """Close at once, whatever is left to write."""
        ...


class Backlog:
    """The connections that have much to write, the one that has been waiting longest first."""

    def __init__(self, most_bytes: int) -> None:
        """Hold at most `most_bytes`; a single answer may be larger."""
        self._most_bytes = most_bytes
        self._waiting: dict[StuckConnection, int] = {}
        self._total = 0

    def add(self, connection: StuckConnection, size: int) -> None:
        """Count what a connection has to write, and close those for which there is no room."""
        self.remove(connection)
        self._waiting[connection] = size
        self._total += size
        while self._total > self._most_bytes and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.remove(longest)
            longest.abort()

    def remove(self, connection: StuckConnection) -> None:
        """Count no longer what a connection has to write: it is read, or the connection is closed."""
        self._total -= self._waiting.pop(connection, 0)
