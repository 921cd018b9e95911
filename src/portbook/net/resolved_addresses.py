"""From a destination to the addresses that may be dialled: resolved once, each address checked.

`dial.py` dials one of the addresses returned here and never the name, so a DNS record that changes between
the check and the connection has no effect.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol

from portbook.net.destinations import Destination, Destinations

__all__ = ["NotPermitted", "Resolver", "SystemResolver", "addresses_of"]


class NotPermitted(Exception):
    """A destination that may not be dialled, or a name that resolves to a forbidden address."""


class Resolver(Protocol):
    """Resolves names."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the IP addresses of `host`, the best one first.

        Raises `OSError` where there are none.
        """
        ...


class SystemResolver:
    """The system's own resolver, asked in a thread of the event loop."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the IP addresses of `host`, in the system's order.

        Raises `OSError` where there are none.
        """
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(address[4][0]) for address in found]


async def addresses_of(
    destination: Destination, destinations: Destinations, resolver: Resolver
) -> tuple[str, ...]:
    """Return the addresses at which `destination` may be dialled, each once.

    Raises `NotPermitted` if it may not be dialled, or if one of its addresses may not: a name with an allowed
    and a forbidden address is an attack or a mistake. Raises `OSError` where it has no address.
    """
    if not destinations.permits(destination):
        raise NotPermitted("the destination is not on the allowlist")
    if destination.is_address:
        found: Sequence[str] = (destination.host,)
    else:
        found = await resolver.resolve(destination.host, destination.port)
    if not found:
        raise OSError("the name has no address")
    if not all(destinations.permits_address(destination, ip) for ip in found):
        raise NotPermitted(
            "the name resolves to an address outside of the public internet and allowed_networks"
        )
    return tuple(dict.fromkeys(found))
