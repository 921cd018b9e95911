"""The messages that are being answered, by the memory that they take as values: it is bounded.

A message of many small parts takes twenty times as much memory as its bytes while its call runs, and a call
may run for long. Where there is no room for one more, its client is told to retry.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COUNTED_BYTES", "Workload"]

# A smaller message need not be counted: as many as there are connections take less than this bound allows.
COUNTED_BYTES: Final = 16_384

# A part of an array or an object, with what holds it: an empty object takes 64 bytes, and a place 8.
_PART_BYTES: Final = 72


class Workload:
    """How much memory the messages take that are being answered."""

    def __init__(self, most_bytes: int) -> None:
        """Allow `most_bytes` for all of them together; one alone may take more."""
        self._most_bytes = most_bytes
        self._total = 0

    def take(self, message: bytes) -> int | None:
        """Count a message and return what it counts; None where there is no room for it."""
        size = len(message) + _PART_BYTES * message.count(b",")
        if self._total and self._total + size > self._most_bytes:
            return None
        self._total += size
        return size

    def give_back(self, counted: int) -> None:
        """Count a message no longer: it is answered."""
        self._total -= counted
