"""Which addresses may be dialled: the allowlist for URLs and for what a name resolves to. Pure: no I/O.

Two questions, both answered before a packet leaves:

- `permits`: may this scheme, host and port be called at all?
- `permits_address`: may it be called at this IP address, which its name resolved to?

A URL has one reading here or none: what browsers, resolvers and libraries read differently (a backslash, a
user name, a percent sign or a letter beyond ASCII in the host, `127.1`, `0x7f.1`) is refused, not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import urlsplit

__all__ = [
    "BadDestination",
    "Destination",
    "Destinations",
    "ParsedURL",
    "is_public",
    "parse_destination",
    "parse_url",
    "without_secrets",
]

# Which IP addresses belong to the public internet: private, local and special ones do not.

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


DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_TLS_PORT: Final = 443

_PRINTABLE: Final = re.compile(r"[!-\[\]-~]+")  # ASCII, without spaces, controls and the backslash
_URL: Final = re.compile(r"(?i:(https?))://([^/?#]+)([^?#]*)(\?[^#]*)?(#.*)?")
_AUTHORITY: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([1-9][0-9]{0,4}))?")
_HAS_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME: Final = 253  # RFC 1035 2.3.4, without the final dot

# `*` means names of the public DNS. These are names of this machine or of the network it stands in, the
# metadata services of clouds among them: an operator who means one lists it.
_NEARBY: Final = frozenset(
    {"localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp"}
)


class BadDestination(ValueError):
    """An invalid address or entry; the message says why, and quotes nothing of it."""


class Destination(NamedTuple):
    """Where a connection goes, in one canonical form: equal destinations compare equal."""

    scheme: str
    """`http` or `https`."""
    host: str
    """A name in lower case without a final dot, or an IP address; IPv6 without brackets."""
    port: int

    @property
    def is_address(self) -> bool:
        """Return whether the host is an IP address, which needs no resolving."""
        return ":" in self.host or self.host.rpartition(".")[2].isdigit()

    @property
    def is_public_name(self) -> bool:
        """Return whether the host is a name of the public DNS, wherever it resolves to."""
        return not self.is_address and "" in _parents(self.host)

    @property
    def authority(self) -> str:
        """Return host and port as in a URL, without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS[self.scheme] == self.port else f"{host}:{self.port}"


class ParsedURL(NamedTuple):
    """A URL, taken apart."""

    destination: Destination
    path: str
    """Starts with a slash, or is empty."""
    query: str
    """Without its question mark."""


def parse_url(url: str) -> ParsedURL:
    """Return the destination, the path and the query of `url`.

    Raises `BadDestination` unless it is an http or https URL with exactly one reading.
    """
    if not _PRINTABLE.fullmatch(url):
        raise BadDestination("a URL has no spaces, controls, backslashes or characters beyond ASCII in it")
    found = _URL.fullmatch(url)
    if found is None:
        raise BadDestination("a URL starts with http:// or https:// and a host")
    scheme, authority, path, query, _ = found.groups()
    if "@" in authority:
        raise BadDestination(
            "a URL has no user name or password in it; credentials have settings of their own"
        )
    host, port = _parse_authority(authority)
    scheme = scheme.lower()
    return ParsedURL(Destination(scheme, host, port or DEFAULT_PORTS[scheme]), path, (query or "")[1:])


def parse_destination(url: str) -> Destination:
    """Return the destination of `url`.

    Raises `BadDestination` unless it is an http or https URL with exactly one reading.
    """
    return parse_url(url).destination


class Destinations:
    """The destinations that may be dialled, and the networks in which their addresses may lie.

    An entry is one of:

    - `host`: https on 443, and nothing else; for an IP address or `localhost`, any port, http too;
    - `host:port`: that port, with either scheme;
    - `*.domain`, `*.domain:port`: every name below that domain, and not the domain itself;
    - `*`, `*:port`: every name of the public DNS.

    Plain http to port 443 is never allowed. Whatever is listed, a name may not resolve to a private, local or
    otherwise special address unless that address is in one of `networks`.

    `own` are URLs that the operator alone chose: always listed, wherever they lie.
    """

    __slots__ = ("_below", "_exact", "_listed", "_networks", "_own", "entries", "networks")

    def __init__(
        self, entries: Sequence[str] = (), networks: Sequence[str] = (), own: Iterable[str] = ()
    ) -> None:
        """Read the entries.

        Raises `BadDestination` for an invalid entry or network.
        """
        self.entries = tuple(entries)
        self.networks = tuple(networks)
        self._own = frozenset(filter(None, map(_readable, own)))
        self._exact: frozenset[Destination] = self._own
        self._listed: set[tuple[str, int | None]] = set()
        self._below: set[tuple[str, int | None]] = set()
        for entry in entries:
            self._add(entry)
        self._networks = tuple(_parse_network(network) for network in networks)

    @classmethod
    def of_base_urls(
        cls, urls: Iterable[str], networks: Sequence[str] = (), own: Iterable[str] = ()
    ) -> Destinations:
        """Return what may be dialled without an allowlist: exactly these URLs' schemes, hosts and ports.

        An invalid URL allows nothing.

        Raises `BadDestination` for an invalid network.
        """
        made = cls((), networks, own)
        made._exact |= frozenset(filter(None, map(_readable, urls)))
        made.entries = tuple(sorted(destination.authority for destination in made._exact))
        return made

    def permits(self, destination: Destination) -> bool:
        """Return whether `destination` is listed. `permits_address` checks what it resolves to."""
        scheme, host, port = destination
        if destination in self._exact:
            return True
        if scheme == "http" and port == _TLS_PORT:
            return False
        is_near = destination.is_address or host == "localhost"
        # The port that an entry must have: this one, or none where this one is the default.
        ports = (port, None) if is_near or (scheme == "https" and port == _TLS_PORT) else (port,)
        if any((host, listed) in self._listed for listed in ports):
            return True
        if is_near:
            return False
        parents = _parents(host)
        return any((parent, listed) in self._below for parent in parents for listed in ports)

    def permits_address(self, destination: Destination, ip: str) -> bool:
        """Return whether `destination` is listed and may be dialled at `ip`, which its name resolved to.

        1. An invalid address may not, nor one with a zone.
        2. A listed IP address: at itself alone. Nothing was resolved, and the operator wrote it.
        3. A host of the operator's `own` URLs: anywhere.
        4. A network that the operator listed.
        5. `localhost`, listed as such: at any loopback address.
        6. Everything else: at addresses of the public internet.
        """
        try:
            address = ip_address(ip)
        except ValueError:
            return False
        if getattr(address, "scope_id", None) is not None or not self.permits(destination):
            return False
        if destination.is_address:
            return str(address) == destination.host
        if destination in self._own:
            return True
        address = getattr(address, "ipv4_mapped", None) or address
        if any(
            address.version == version and low <= int(address) <= high
            for version, low, high in self._networks
        ):
            return True
        if destination.host == "localhost":
            return address.is_loopback
        return is_public(address)

    def _add(self, entry: str) -> None:
        wild = entry.startswith("*")
        if wild and entry[:2] in ("*", "*:"):
            port = _parse_authority(f"any{entry[1:]}")[1]
            self._below.add(("", port))
            return
        if wild and not entry.startswith("*."):
            raise BadDestination("a pattern is * or starts with *. and has no other star")
        host, port = _parse_authority(entry[2:] if wild else entry)
        if wild and Destination("https", host, _TLS_PORT).is_address:
            raise BadDestination("a star stands for names, and there are none below an IP address")
        (self._below if wild else self._listed).add((host, port))


def _parents(host: str) -> list[str]:
    """Return the parent domains of `host`; the root, an empty string, only for a name of public DNS."""
    labels = host.split(".")
    parents = [".".join(labels[start:]) for start in range(1, len(labels))]
    return parents if len(labels) == 1 or labels[-1] in _NEARBY else [*parents, ""]


def _readable(url: str) -> Destination | None:
    try:
        return parse_destination(url)
    except BadDestination:
        return None


def _parse_authority(authority: str) -> tuple[str, int | None]:
    """Return the host in its canonical form, and the port if it has one."""
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise BadDestination(
            "a host is an ASCII name or an IP address (IPv6 in brackets); only a colon and a port may follow"
        )
    literal, name, port = found.groups()
    if port is not None and int(port) > 65_535:
        raise BadDestination("a port is 1 to 65535")
    return _parse_v6(literal) if literal else _parse_host(name), int(port) if port else None


def _parse_v6(text: str) -> str:
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise BadDestination("what stands in brackets is not an IPv6 address") from None


def _parse_host(text: str) -> str:
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    # A host that ends in a number must be an IPv4 address: the C library reads 127.1, 0x7f.1 and 2130706433
    # as 127.0.0.1, and different libraries read them as names.
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(name))
        except ValueError:
            raise BadDestination("an IPv4 address is written as four decimal numbers") from None
    if len(name) > _MAX_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise BadDestination(
            "a host's name has labels of 1 to 63 letters, digits and hyphens between its dots"
        )
    return name


def _parse_network(text: str) -> tuple[int, int, int]:
    try:
        network = ip_network(text)
    except ValueError:
        raise BadDestination(
            "a network is written as 10.0.0.0/8 or fd00::/8, with no bits set after the prefix"
        ) from None
    return network.version, int(network.network_address), int(network.broadcast_address)


def without_secrets(uri: str) -> str:
    """Return `uri` as it may be shown: without userinfo, query and fragment."""
    if not _HAS_SCHEME.match(uri):
        return uri
    try:
        parts = urlsplit(uri)
    except ValueError:
        return "(an address that cannot be read)"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
