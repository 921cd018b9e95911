"""Sockets that listen for HTTP: at an address and a port, or at a path."""

from __future__ import annotations

import ipaddress
import resource
import socket
from dataclasses import replace
from typing import Final

from portbook.doors.http.server.admission import ConnectionLimits
from portbook.text.late_pattern import late_pattern

__all__ = ["bind", "is_host", "is_loopback", "with_descriptors"]

_NAME: Final = late_pattern(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9.])?")

# Connections that wait to be accepted.
_BACKLOG: Final = 2048

# Descriptors that are not connections of clients: the log, the store, requests to gateways.
_FURTHER: Final = 256


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port`.

    Raises `OSError` where it cannot listen, for example because the port is in use.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)  # from here on, no connection is refused
    except OSError:
        listener.close()
        raise
    return listener


def is_host(host: str) -> bool:
    """Return whether `host` can be an address, or a name of this machine."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # What looks like an address and is none would be asked of the name servers.
        return _NAME.fullmatch(host) is not None and not host.replace(".", "").isdigit()
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
