"""Whether an HTTP request was meant for this server, by its Host and its Origin. Pure: no I/O.

A page of a different site can make a browser call us, and can point its own name at this machine (DNS
rebinding). So, before the body of a request is read:

1. Its Host must be a name of loopback or an allowed one. Bound to more than loopback, without listed names,
   any Host passes.
2. Its Origin, if a browser sent one, must be the Host itself or an allowed one.

Names are compared exactly, after parsing: the case of letters and the spelling of an IP address do not
count, and an ambiguous name matches nothing. `doors/http/router.py` applies this to every
request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from portbook.errors import Reason, Refused
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = ["BadHost", "Hosts"]

_AUTHORITY: Final = late_pattern(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+))(?::([0-9]{1,5}))?", re.ASCII)
_ORIGIN: Final = late_pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]+)", re.ASCII)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# Clients always send the same Host: its verdict is cached, unless the headers are long enough to fill memory.
_MAX_REMEMBERED: Final = 512

_FOREIGN_HOST: Final = (
    "The Host header does not name this server. The operator can allow it in server.allowed_hosts."
)
_FOREIGN_ORIGIN: Final = (
    "Pages of this Origin may not call tools. The operator can allow it in server.allowed_origins."
)


class BadHost(ValueError):
    """An entry that is not a Host or Origin; the message says why, and what one looks like."""

    def __init__(self, setting: str, number: int, message: str) -> None:
        super().__init__(message)
        self.setting = setting
        """The setting that lists it, and its place in there."""
        self.number = number


class _Authority(NamedTuple):
    name: str
    port: int | None


class _Origin(NamedTuple):
    scheme: str
    authority: _Authority


class Hosts:
    """The names of this server, and the sites whose pages may call it."""

    __slots__ = ("_is_exposed", "_judge", "_names", "_origins")

    def __init__(self, *, is_exposed: bool, names: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        """Take the allowed `names` and `origins`; `is_exposed` where different machines can connect.

        Raises `BadHost` for an invalid entry.
        """
        self._is_exposed = is_exposed
        self._names = frozenset(_listed_host(*each) for each in enumerate(names))
        self._origins = frozenset(_listed_origin(*each) for each in enumerate(origins))
        self._judge = lru_cache(maxsize=256)(self._hint)

    def refuse(self, headers: Mapping[bytes, bytes]) -> Refused | None:
        """Return the refusal of a request with a foreign Host or Origin, None if it may be served."""
        said = headers.get(b"host", b""), headers.get(b":authority"), headers.get(b"origin")
        is_short = sum(len(each or b"") for each in said) <= _MAX_REMEMBERED
        hint = (self._judge if is_short else self._hint)(*said)
        return None if hint is None else Refused(Reason.FOREIGN_HOST, details={"hint": hint})

    def allows_origin(self, origin: bytes) -> bool:
        """Return whether pages of this origin may call us, and read our answers."""
        return bool(self._origins) and _origin_of(origin.decode("latin-1")) in self._origins

    def _hint(self, host: bytes, target: bytes | None, origin: bytes | None) -> str | None:
        """Return how the operator could allow a refused request, None if it may be served.

        `target` is the host in the request line, if there is one: it is checked like the Host.
        """
        named = [_authority_of(each.decode("latin-1")) for each in (host, target) if each is not None]
        if not all(map(self._is_ours, named)):
            return _FOREIGN_HOST
        if origin is None:
            return None
        came_from = _origin_of(origin.decode("latin-1"))
        if came_from is None:  # "null", for example: a page that hides its site
            return _FOREIGN_ORIGIN
        is_own = all(each is not None and _seen_by(came_from.scheme, each) == came_from for each in named)
        return None if is_own or came_from in self._origins else _FOREIGN_ORIGIN

    def _is_ours(self, host: _Authority | None) -> bool:
        if self._is_exposed and not self._names:
            return True
        if host is None:
            return False
        return _is_loopback(host.name) or not self._names.isdisjoint((host, _Authority(host.name, None)))


def _authority_of(text: str) -> _Authority | None:
    """Return a name and a port in the form that is compared; None where they are invalid."""
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        return None
    bracketed, name, digits = found.groups()
    port = None if digits is None else int(digits)
    if bracketed is None:
        return _Authority(name.lower(), port)
    from ipaddress import ip_address  # late: over STDIO there is no Host

    try:
        return _Authority(str(ip_address(bracketed)), port)
    except ValueError:
        return None


def _origin_of(text: str) -> _Origin | None:
    found = _ORIGIN.fullmatch(text)
    authority = None if found is None else _authority_of(found[2])
    return None if found is None or authority is None else _seen_by(found[1].lower(), authority)


def _seen_by(scheme: str, authority: _Authority) -> _Origin:
    """Return an origin, without the default port of its scheme."""
    is_default = authority.port == _DEFAULT_PORTS.get(scheme)
    return _Origin(scheme, _Authority(authority.name, None) if is_default else authority)


def _listed_host(number: int, text: str) -> _Authority:
    found = _authority_of(text)
    if found is None:
        raise BadHost(
            "allowed_hosts", number, 'can be no Host; one looks like "mcp.example.com" or "10.0.0.5:8765"'
        )
    return found


def _listed_origin(number: int, text: str) -> _Origin:
    found = _origin_of(text)
    if found is None:
        raise BadHost(
            "allowed_origins",
            number,
            'can be no Origin; one looks like "http://localhost:6274", without a path',
        )
    return found


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
