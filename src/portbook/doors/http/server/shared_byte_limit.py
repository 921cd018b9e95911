"""What is held for all clients together: it is bounded, whatever each of them may have.

It is used for what comes in and for what goes out. A message is held until it has come whole, and an answer
that is there whole until its client has read it. A client that stops in the middle has a deadline; until then
its part takes memory. If all of these parts take too much, the connection that has been waiting longest makes
room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["SharedByteLimit"]

T = TypeVar("T")


class SharedByteLimit(Generic[T]):
    """The connections for which much is held, the one that has been waiting longest first."""

    def __init__(self, most_bytes: int, end: Callable[[T], None]) -> None:
        """Hold at most `most_bytes`, of one connection also more; `end` makes a connection give way."""
        self._most_bytes = most_bytes
        self._end = end
        self._waiting: dict[T, int] = {}
        self._total = 0

    def add(self, connection: T, size: int) -> None:
        """Count what is held for a connection, and end those for which there is no room."""
        self._total += size - self._waiting.get(connection, 0)
        self._waiting[connection] = size
        while self._total > self._most_bytes and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.remove(longest)
            self._end(longest)

    def remove(self, connection: T) -> None:
        """Count a connection no longer: nothing is held for it, or it is closed."""
        self._total -= self._waiting.pop(connection, 0)
