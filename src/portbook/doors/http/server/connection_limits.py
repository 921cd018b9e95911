"""Who gets a connection: limits for all and for each address, and a reserve that is never given away.

1. One address, or one /64 of IPv6, has a limited number of connections. Loopback has no limit, and a trusted
   proxy none either: behind it, the forwarded address has a limited number of requests at a time.
2. If all connections are taken, the one that was idle longest is closed for the next.
3. If none is idle, the next connection is one of the reserve: it serves health checks and operators only, and
   has little time. If the reserve is taken, too, its oldest connection is closed for the next.
"""

from __future__ import annotations

import resource
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, Protocol

from portbook.doors.http.memory_limits import UNFINISHED_BYTES, UNREAD_BYTES, WORKLOAD_BYTES
from portbook.doors.http.server.peer_address import PeerAddresses

__all__ = [
    "Admission",
    "ConnectionLimits",
    "Place",
    "PlacedConnection",
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
