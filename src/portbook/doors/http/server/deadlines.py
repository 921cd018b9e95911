"""How long a connection may stay in each phase.

A client that is slow, silent or stuck loses its connection, whatever it is in the middle of.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

__all__ = ["BODY_SECONDS", "MIN_READ_BYTES", "NEVER", "WRITE_SECONDS", "Deadlines", "Phase"]

NEVER: Final = float("inf")

# A message is at most a mebibyte: a client that needs longer than this holds up a connection and a shutdown.
BODY_SECONDS: Final = 15.0

# How long a client may read nothing while there is much to write.
WRITE_SECONDS: Final = 30.0

# What it has to read before that deadline to get as long again: 70 kbit/s, less than any network has.
MIN_READ_BYTES: Final = 262_144


class Phase(IntEnum):
    """What a connection is waiting for."""

    FIRST_BYTE = 0
    """A new connection's first byte."""
    HEAD = 1
    """The rest of a head."""
    BODY = 2
    """The rest of a message."""
    ANSWER = 3
    """Us: a request is being answered. A tool has a deadline of its own."""
    IDLE = 4
    """The next request."""
    DRAIN = 5
    """The end of what nobody reads: it was answered before it had come whole."""
    CLOSING = 6
    """The client, which has to read what is left."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for each phase, kept to within a second."""

    first_byte_s: float = 15.0
    head_s: float = 15.0
    body_s: float = BODY_SECONDS
    idle_s: float = 60.0
    """Longer than the pools of common clients keep a connection."""
    write_s: float = WRITE_SECONDS
    """How long a client may read nothing while there is much to write."""
    drain_s: float = 10.0
    reserve_s: float = 2.0
    """For the first byte, a head and the next request on a connection of the reserve."""
    sweep_s: float = 1.0
    """How often the deadlines are looked at: one timer for all connections."""

    def by_phase(self) -> tuple[float, ...]:
        """Return the seconds of every phase, in the order of the phases."""
        head, drain = self.head_s, self.drain_s
        return (self.first_byte_s, head, self.body_s, NEVER, self.idle_s, drain, drain)

    def by_phase_in_reserve(self) -> tuple[float, ...]:
        """Return the same for a connection of the reserve."""
        soon, drain = self.reserve_s, self.drain_s
        return (soon, soon, self.body_s, NEVER, soon, drain, drain)
