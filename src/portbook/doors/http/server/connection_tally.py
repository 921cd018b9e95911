"""`ConnectionTally`: how many connections each worker has open, in memory that all of them share.

Each worker writes its own place and reads the others'. A place is one aligned number, which is read and
written as a whole: there is nothing to lock. A number that is a moment old does no harm.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from typing import Final

__all__ = ["ConnectionTally", "create_tally"]

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
