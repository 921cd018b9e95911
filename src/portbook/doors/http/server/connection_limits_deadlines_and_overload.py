"""Who gets a connection: limits for all and for each address, and a reserve that is never given away.

1. One address, or one /64 of IPv6, has a limited number of connections. Loopback has no limit, and a trusted
   proxy none either: behind it, the forwarded address has a limited number of requests at a time.
2. If all connections are taken, the one that was idle longest is closed for the next.
3. If none is idle, the next connection is one of the reserve: it serves health checks and operators only, and
   has little time. If the reserve is taken, too, its oldest connection is closed for the next.

Beside that, how long it may stay in each phase, and whose requests are taken when there are too many.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic
from typing import Final, Protocol

from portbook.doors.http.memory_limits import UNFINISHED_BYTES, UNREAD_BYTES, WORKLOAD_BYTES
from portbook.doors.http.response import problem
from portbook.doors.http.server.peer_address import PeerAddresses
from portbook.doors.http.server.response_writer import CLOSE_LINE, document

__all__ = [
    "BODY_SECONDS",
    "MIN_READ_BYTES",
    "NEVER",
    "PROMPT",
    "WRITE_SECONDS",
    "Admission",
    "ConnectionLimits",
    "Deadlines",
    "Phase",
    "Place",
    "PlacedConnection",
    "Turns",
    "WaitingConnection",
    "busy",
    "is_served_by_reserve",
    "with_descriptors",
]

# What a connection of the reserve serves: health checks, and what operators use.
_SERVED_BY_RESERVE: Final = ("/health", "/livez", "/readyz", "/approvals")

# Whoever has one address of IPv6 has all that begin with the same 64 bits (RFC 6177).
_GROUPED_BITS: Final = 64

# Descriptors that are not connections of clients: the log, the store, requests to gateways.
_FURTHER: Final = 256


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be."""

    most: int = 2048
    """Of all clients; each may hold a message of up to a mebibyte."""
    reserve: int = 64
    """Beyond these, for health checks and operators."""
    per_address: int = 256
    unread_bytes: int = UNREAD_BYTES
    """What may wait to be read by all clients together."""
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


# How long a connection may stay in each phase.
#
# A client that is slow, silent or stuck loses its connection, whatever it is in the middle of.

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


# Whose requests are taken when more have come than one turn of the event loop has time for.
#
# A turn has 10 ms for requests. What has come by then waits, in the order in which it came, and is taken in
# the turns that follow. So the loop looks at its sockets again soon, however much there is to do: new
# connections are accepted, and health checks, which do not wait here, are answered. Whoever there is no
# room for is told to retry.

# Health checks, which are answered out of turn: an orchestrator that gets no answer restarts a busy server.
PROMPT: Final = tuple(
    b"%b %b " % (method, path) for method in (b"GET", b"HEAD") for path in (b"/livez", b"/readyz", b"/health")
)

# A few dozen calls: short for a health check that waits, long beside what looking at the sockets costs.
_TURN_S: Final = 0.01

# A request that would wait longer than this is better made later: its client is about to give up.
_LATE_S: Final = 10.0

# When a client that was turned away for lack of room may try again.
_RETRY: Final = b"retry-after: 1\r\n"


def busy(date: bytes) -> bytes:
    """Return the response to a client that there is no room for; the connection closes after it."""
    reply = problem(503, "BUSY", "The server is busy. Retry later.", _RETRY)
    return document(reply, CLOSE_LINE, date)


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
