"""New connections: a destination is checked, resolved, dialled at a checked address, and authenticated."""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from portbook.net.destinations import Destination, Destinations
from portbook.net.http_connection import Broken, HttpConnection
from portbook.net.taskless_waits import TimeLimited

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = [
    "Dial",
    "Dialler",
    "NotPermitted",
    "Resolver",
    "SystemResolver",
    "Unreachable",
    "Untrusted",
    "addresses_of",
]

# From a destination to the addresses that may be dialled: resolved once, each address checked.
#
# `Dialler` dials one of the addresses returned here and never the name, so a DNS record that changes between
# the check and the connection has no effect.


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


# How long to wait for an address before trying the next one.
_NEXT_ADDRESS_S: Final = 3.0
_OK: Final = range(200, 300)


class Unreachable(Exception):
    """No connection could be made: nothing was sent."""


class Untrusted(Exception):
    """The server failed TLS authentication: nothing was sent."""


class Dial(Protocol):
    """Opens a connection to an address."""

    async def __call__(self, ip: str, port: int, tls: SSLContext | None, name: str) -> HttpConnection:
        """Return a connection to `ip`, which must authenticate as `name` where `tls` is given.

        Raises `OSError` where the connection fails.
        """
        ...


async def dial_system(ip: str, port: int, tls: SSLContext | None, name: str) -> HttpConnection:
    """Open a connection through the event loop; `ip` is an address, and nothing is resolved.

    Raises `OSError` where the connection fails.
    """
    _, connection = await asyncio.get_running_loop().create_connection(
        HttpConnection, ip, port, flags=socket.AI_NUMERICHOST
    )
    if tls is not None:
        try:
            await connection.secure(tls, name)
        except BaseException:
            connection.abort()
            raise
    return connection


class Dialler:
    """Opens connections to permitted destinations."""

    def __init__(self, resolver: Resolver | None = None, dial: Dial = dial_system) -> None:
        # Now, and not with the first connection: every one needs it, in clear, too, and calls would wait.
        importlib.import_module("asyncio.sslproto")
        self._resolver = resolver or SystemResolver()
        self._dial = dial
        self._contexts: dict[Path | None, SSLContext] = {}

    async def connect(
        self,
        destination: Destination,
        destinations: Destinations,
        *,
        proxy: Destination | None = None,
        ca_file: Path | None = None,
    ) -> HttpConnection:
        """Return a new connection to `destination`.

        A proxy is the operator's own and resolves names itself: then only the name is checked.

        Raises `NotPermitted` where `destinations` do not allow it, `Unreachable` and `Untrusted`.
        """
        tls = self._context(ca_file) if destination.scheme == "https" else None
        if proxy is None:
            try:
                addresses = await addresses_of(destination, destinations, self._resolver)
            except OSError:
                raise Unreachable("the name cannot be resolved") from None
            return await self._dial_any(addresses, destination.port, tls, destination.host)
        if not destinations.permits(destination):
            raise NotPermitted("the destination is not on the allowlist")
        return await self._tunnel(proxy, destination, tls)

    async def _dial_any(
        self, addresses: Sequence[str], port: int, tls: SSLContext | None, name: str
    ) -> HttpConnection:
        """Return a connection to the first address that accepts one."""
        for ip in addresses[:-1]:
            try:
                until = asyncio.get_running_loop().time() + _NEXT_ADDRESS_S
                return await TimeLimited(self._dial_one(ip, port, tls, name), until)
            except (Unreachable, TimeoutError):
                continue
        return await self._dial_one(addresses[-1], port, tls, name)

    async def _dial_one(self, ip: str, port: int, tls: SSLContext | None, name: str) -> HttpConnection:
        try:
            return await self._dial(ip, port, tls, name)
        except OSError as error:
            raise _meaning_of(error) from None

    async def _tunnel(
        self, proxy: Destination, destination: Destination, tls: SSLContext | None
    ) -> HttpConnection:
        """Return a connection to `destination` through a proxy, which learns only host and port."""
        try:
            found = (
                (proxy.host,) if proxy.is_address else await self._resolver.resolve(proxy.host, proxy.port)
            )
        except OSError:
            raise Unreachable("the proxy's name cannot be resolved") from None
        if not found:
            raise Unreachable("the proxy's name has no address")
        connection = await self._dial_any(found, proxy.port, None, proxy.host)
        try:
            await _pass_through(connection, destination, tls)
        except Broken:
            raise Unreachable("the proxy closed the connection") from None
        except OSError as error:
            connection.abort()
            raise _meaning_of(error) from None
        except BaseException:
            connection.abort()
            raise
        return connection

    def _context(self, ca_file: Path | None) -> SSLContext:
        context = self._contexts.get(ca_file)
        if context is None:
            import ssl

            try:
                context = ssl.create_default_context(cafile=ca_file)  # 15 ms, spent only for TLS
            except OSError:
                raise Untrusted("the file of trusted certificates cannot be read") from None
            context.set_alpn_protocols(["http/1.1"])
            self._contexts[ca_file] = context
        return context


async def _pass_through(connection: HttpConnection, destination: Destination, tls: SSLContext | None) -> None:
    """Turn a connection to a proxy into a tunnel to `destination`.

    Raises `Unreachable` where the proxy refuses, `Broken` and `OSError`.
    """
    host = f"[{destination.host}]" if ":" in destination.host else destination.host
    target = f"{host}:{destination.port}"
    status = await connection.open_tunnel(
        f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("ascii")
    )
    if status not in _OK:
        raise Unreachable("the proxy refused the connection")
    if not connection.is_usable:  # bytes after its answer would be read as the server's
        raise Unreachable("the proxy closed the connection, or said more than it was asked for")
    if tls is not None:
        await connection.secure(tls, destination.host)


def _meaning_of(error: OSError) -> Unreachable | Untrusted:
    """Return the meaning of a failure to connect; the message quotes nothing of the error."""
    from ssl import SSLError

    if isinstance(error, SSLError):
        return Untrusted("the server's certificate is not valid, or it speaks no TLS")
    if isinstance(error, ConnectionRefusedError):
        return Unreachable("the connection was refused")
    return Unreachable("no connection could be made")
