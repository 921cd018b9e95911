"""Which IP addresses belong to the public internet: private, local and special ones do not. Pure: no I/O."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

__all__ = ["is_public"]

# Not the public internet: IANA's special-purpose registries, without the ranges kept for documentation, which
# lead nowhere; plus the address of the host of every machine in Azure.
_REFUSED_V4: Final = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
)  # fmt: skip
# Within 2000::/3, the only global range: protocol assignments with Teredo, and 6to4. Both kinds of tunnel
# hold an IPv4 address that a relay would dial for us.
_GLOBAL_V6: Final = "2000::/3"
_REFUSED_V6: Final = ("2001::/23", "2002::/16")
_NAT64: Final = "64:ff9b::/96"


def _bounds(*networks: str) -> tuple[tuple[int, int], ...]:
    parsed = map(ip_network, networks)
    return tuple((int(each.network_address), int(each.broadcast_address)) for each in parsed)


_REFUSED_V4_BOUNDS: Final = _bounds(*_REFUSED_V4)
_REFUSED_V6_BOUNDS: Final = _bounds(*_REFUSED_V6)
_GLOBAL_V6_BOUNDS: Final = _bounds(_GLOBAL_V6)
_NAT64_BOUNDS: Final = _bounds(_NAT64)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address belongs to the public internet: not private, local or special."""
    value = int(address)
    if address.version == 4:
        return not _lies_in(value, _REFUSED_V4_BOUNDS)
    if _lies_in(value, _NAT64_BOUNDS):  # a translator dials the IPv4 address in its last 32 bits
        return not _lies_in(value & 0xFFFF_FFFF, _REFUSED_V4_BOUNDS)
    return _lies_in(value, _GLOBAL_V6_BOUNDS) and not _lies_in(value, _REFUSED_V6_BOUNDS)


def _lies_in(value: int, bounds: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= value <= high for low, high in bounds)
