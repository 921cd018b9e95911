"""Who gets a connection: limits for all and for each address, and a reserve that is never given away.

1. One address, or one /64 of IPv6, has a limited number of connections. Loopback has no limit, and a trusted
   proxy none either: behind it, the forwarded address has a limited number of requests at a time.
2. If all connections are taken, the one that was idle longest is closed for the next.
3. If none is idle, the next connection is one of the reserve: it serves health checks and operators only, and
   has little time. If the reserve is taken, too, its oldest connection is closed for the next.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic
from typing import Final, Protocol

from portbook.doors.http.message_memory_limit import UNFINISHED_BYTES, WORKLOAD_BYTES
from portbook.doors.http.server.peer_address import PeerAddresses

__all__ = [
    "Admission",
    "ConnectionLimits",
    "ConnectionTally",
    "Place",
    "PlacedConnection",
    "Turns",
    "WaitingConnection",
    "create_tally",
    "is_served_by_reserve",
]

# What a connection of the reserve serves: health checks, and what operators use.
_SERVED_BY_RESERVE: Final = ("/health", "/livez", "/readyz", "/approvals")

# Whoever has one address of IPv6 has all that begin with the same 64 bits (RFC 6177).
_GROUPED_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be."""

    most: int = 2048
    """Of all clients; each may hold a message of up to a mebibyte."""
    reserve: int = 64
    """Beyond these, for health checks and operators."""
    per_address: int = 256
    unread_bytes: int = 67_108_864
    """What may wait to be read by all clients together: a few dozen large answers."""
    unfinished_bytes: int = UNFINISHED_BYTES
    """What may have come from all clients together that is not a whole message yet, or has to wait."""
    workload_bytes: int = WORKLOAD_BYTES
    """What the messages that are being answered may take as values."""


class Place(Enum):
    """What a connection got."""

    USUAL = "usual"
    RESERVE = "reserve"
    NONE = "none"


class PlacedConnection(Protocol):
    """A connection, as far as its place is concerned."""

    def give_way(self) -> None:
        """Close at once, for a different connection."""
        ...


class Admission:
    """The connections that are open."""

    def __init__(self, limits: ConnectionLimits, addresses: PeerAddresses) -> None:
        self._limits = limits
        self._is_trusted = addresses.is_trusted
        self._counted_as = lru_cache(maxsize=1024)(self._group_of)
        self._usual = 0
        self._reserve: dict[PlacedConnection, None] = {}
        self._of_address: Counter[str] = Counter()
        self.idle: dict[PlacedConnection, None] = {}
        """Those that may be closed for a different one, the one that was idle longest first."""

    def place(self, connection: PlacedConnection, address: str | None) -> Place:
        """Return the place of a new connection."""
        if not self.count(address):
            return Place.NONE
        if self._usual >= self._limits.most and self.idle:
            next(iter(self.idle)).give_way()
        if self._usual < self._limits.most:
            self._usual += 1
            return Place.USUAL
        if len(self._reserve) >= self._limits.reserve:
            next(iter(self._reserve)).give_way()
        self._reserve[connection] = None
        return Place.RESERVE

    def leave(self, connection: PlacedConnection, place: Place, address: str | None) -> None:
        """Free the place of a connection."""
        self.idle.pop(connection, None)
        if place is Place.NONE:
            return
        self.discount(address)
        if place is Place.USUAL:
            self._usual -= 1
        else:
            self._reserve.pop(connection, None)

    def count(self, address: str | None) -> bool:
        """Count one more of an address, unless it has too many; None is not counted."""
        counted = None if address is None else self._counted_as(address)
        if counted is None:
            return True
        if self._of_address[counted] >= self._limits.per_address:
            return False
        self._of_address[counted] += 1
        return True

    def discount(self, address: str | None) -> None:
        """Count one less of an address."""
        counted = None if address is None else self._counted_as(address)
        if counted is not None:
            self._of_address[counted] -= 1
            if not self._of_address[counted]:
                del self._of_address[counted]

    def _group_of(self, address: str) -> str | None:
        """Return which connections those of an address count among; None for loopback and trusted proxies."""
        found = ip_address(address)
        if found.is_loopback or self._is_trusted(address):
            return None
        if isinstance(found, IPv6Address):
            return str(ip_network((found, _GROUPED_BITS), strict=False))
        return address


def is_served_by_reserve(path: str) -> bool:
    """Return whether a connection of the reserve serves a path."""
    return path.startswith(_SERVED_BY_RESERVE)


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


# Whose requests are taken when more have come than one turn of the event loop has time for.
#
# A turn has 10 ms for requests. What has come by then waits, in the order in which it came, and is taken in
# the turns that follow. So the loop looks at its sockets again soon, however much there is to do: new
# connections are accepted, and health checks, which do not wait here, are answered.

# A few dozen calls: short for a health check that waits, long beside what looking at the sockets costs.
_TURN_S: Final = 0.01

# A request that would wait longer than this is better made later: its client is about to give up.
_LATE_S: Final = 10.0


class WaitingConnection(Protocol):
    """A connection whose next request has come."""

    def take_turn(self) -> None:
        """Take a few requests."""
        ...


class Turns:
    """The connections that wait for their turn, the one that has been waiting longest first."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._waiting: deque[tuple[WaitingConnection, float]] = deque()
        self._until = 0.0
        self._is_running = False

    @property
    def is_late(self) -> bool:
        """Return whether those who come now would wait too long."""
        return bool(self._waiting) and self._clock() - self._waiting[0][1] > _LATE_S

    def has_time(self) -> bool:
        """Return whether a request may be taken at once; the first one to ask begins a turn."""
        if self._is_running:
            return not self._waiting and self._clock() < self._until
        self._begin()
        return True

    def wait(self, connection: WaitingConnection) -> None:
        """Take requests of a connection when it is its turn."""
        self._waiting.append((connection, self._clock()))
        if not self._is_running:
            self._begin()

    def _begin(self) -> None:
        self._is_running = True
        self._until = self._clock() + _TURN_S
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        """Begin the next turn with those who wait, each of them once at most."""
        self._is_running = bool(self._waiting)
        if not self._is_running:
            return
        self._begin()
        for _ in range(len(self._waiting)):
            self._waiting.popleft()[0].take_turn()
            if self._clock() >= self._until:
                return
