"""Who is at the other end: a client, or a proxy that says for whom it asks. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from portbook.doors.http.request import RequestHead

__all__ = ["BadForwarding", "BadProxy", "PeerAddresses", "normal_address"]

_FORWARDED: Final = b"x-forwarded-for"

# More proxies in a row are a mistake or an attack.
_MAX_HOPS: Final = 16


class BadProxy(ValueError):
    """An entry of the trusted proxies that is neither an address nor a network."""


class BadForwarding(ValueError):
    """An X-Forwarded-For of a trusted proxy that is not a list of addresses."""


class PeerAddresses:
    """Which addresses speak for further ones."""

    def __init__(self, trusted_proxies: Sequence[str] = ()) -> None:
        """Trust these proxies, addresses or networks, to say who their client is.

        Raises `BadProxy` for an entry that is neither.
        """
        self._trusted = tuple(_network(entry) for entry in trusted_proxies)
        self.has_proxies = bool(self._trusted)
        """Whether anybody speaks for further addresses."""
        self.is_trusted = lru_cache(maxsize=1024)(self._is_trusted)

    def client_of(self, head: RequestHead, peer: str) -> str | None:
        """Return the client that a trusted proxy speaks for; None if the peer is the client itself.

        It is the last address that no trusted proxy has: whatever stands before it, a client can make up.

        Raises `BadForwarding` where the header is not a list of addresses.
        """
        forwarded = head.fields.get(_FORWARDED)
        if forwarded is None or not self.is_trusted(peer):
            return None
        hops = forwarded.decode("latin-1").split(",")
        if len(hops) > _MAX_HOPS:
            raise BadForwarding
        client = None
        for hop in reversed(hops):
            client = normal_address(hop.strip(" \t"))
            if client is None or "%" in client:  # a zone means nothing to a different machine
                raise BadForwarding
            if not self.is_trusted(client):
                break
        return client

    def _is_trusted(self, address: str) -> bool:
        if not self._trusted:
            return False
        found = ip_address(address)
        return any(found in network for network in self._trusted)


def _network(entry: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(entry)
    except ValueError:
        raise BadProxy(
            'lists what is no address or network; one looks like "10.0.0.5" or "10.0.0.0/8"'
        ) from None


def normal_address(text: str) -> str | None:
    """Return an address in the form that is compared; None for what is none."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)
