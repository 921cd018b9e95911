"""The memory of messages that come, are being answered, or wait to be read: it is bounded.

A message of many small parts takes twenty times as much memory as its bytes while its call runs, and a call
may run for long. Where there is no room for one more, its client is told to retry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from portbook.errors import Reason, Refused

__all__ = [
    "COUNTED_BYTES",
    "UNFINISHED_BYTES",
    "UNREAD_BYTES",
    "WORKLOAD_BYTES",
    "MessageMemory",
    "MessageMemoryLimit",
    "SharedByteLimit",
    "no_room",
]

# What messages may take together that are being answered, as values, and those that have not come whole.
WORKLOAD_BYTES: Final = 268_435_456
UNFINISHED_BYTES: Final = 67_108_864

# What answers may take that wait to be read, of all clients together: a few dozen large ones.
UNREAD_BYTES: Final = 67_108_864

# A smaller message need not be counted: as many as there are connections take less than this bound allows.
COUNTED_BYTES: Final = 16_384

# A part of an array or an object, with what holds it: an empty object takes 64 bytes, and a place 8.
_PART_BYTES: Final = 72


def no_room() -> Refused:
    """Return the refusal of a message for which there is no memory."""
    return Refused(Reason.TOO_MANY_IN_FLIGHT, details={"retry_after_s": 1})


class MessageMemoryLimit:
    """How much memory the messages take that are being answered."""

    def __init__(self, most_bytes: int) -> None:
        """Allow `most_bytes` for all of them together; one alone may take more."""
        self._most_bytes = most_bytes
        self._total = 0

    def take(self, message: bytes) -> MessageMemory | None:
        """Count a message and return what it takes; None where there is no room for it."""
        size = len(message) + _PART_BYTES * message.count(b",")
        if self._total and self._total + size > self._most_bytes:
            return None
        self._total += size
        return MessageMemory(self, size)

    def has_room_for(self, more: int) -> bool:
        """Count `more` bytes of a message that is still coming; return whether there was room for them."""
        if self._total + more > self._most_bytes:
            return False
        self._total += more
        return True

    def give_back(self, counted: int) -> None:
        """Count so many bytes no longer: their message is answered, or has come whole."""
        self._total -= counted


class MessageMemory:
    """What one message takes, until nothing needs it: its call may outlive the connection that it came on."""

    __slots__ = ("_counted", "_holders", "_limit")

    def __init__(self, limit: MessageMemoryLimit, counted: int) -> None:
        """Count for one holder, the connection."""
        self._limit = limit
        self._counted = counted
        self._holders = 1

    def hold(self) -> None:
        """Count for one more holder."""
        self._holders += 1

    def release(self) -> None:
        """Count for one holder less; after the last one, there is room for other messages."""
        self._holders -= 1
        if not self._holders:
            self._limit.give_back(self._counted)


# `SharedByteLimit`: what is held for all clients together: it is bounded, whatever each of them may have.
#
# It is used for what comes in and for what goes out. A message is held until it has come whole, and an
# answer that is there whole until its client has read it. A client that stops in the middle has a deadline;
# until then its part takes memory. If all of these parts take too much, the connection that has been waiting
# longest makes room.

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
