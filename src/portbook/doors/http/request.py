"""A request, as every route sees it: its head, its body within the limits, and who sent it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from portbook.doors.http.memory_limits import MessageMemory
from portbook.model import Arrival
from portbook.wire.lines_and_size_limit import Frame

__all__ = ["AUTHORITY", "Headers", "InboundRequest", "RequestHead", "arrival_of", "key_of", "one_for_equal"]

Headers: TypeAlias = list[tuple[bytes, bytes]]
T = TypeVar("T")

# The host that a request line names stands among the headers by this name, which no real header can have.
AUTHORITY: Final = b":authority"

_MAX_SESSION: Final = 256

# Heads of one client differ in the length of the body alone: how its messages arrive is one object, by which
# records know that they are alike. A longer one could fill memory.
_MAX_REMEMBERED: Final = 1024
_REMEMBERED: Final = 512


class RequestHead:
    """What a request says before its body. It never changes, so one object may serve equal heads."""

    __slots__ = ("_derived", "fields", "headers", "method", "path", "query", "version")

    def __init__(
        self, method: str, path: str, query: bytes, headers: Headers, version: str | None = None
    ) -> None:
        """Take the parts of a head; `path` is decoded, names of headers are in lower case.

        `version` is that of HTTP, as in `1.1`; None where it is unknown.
        """
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.version = version
        self.fields = _joined(headers)
        """The headers by name; a repeated one with all its values, separated by commas."""
        self._derived: dict[Callable[[RequestHead], Any], Any] = {}

    @property
    def announces_body(self) -> bool:
        """Return whether a body follows."""
        return self.fields.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.fields

    def derive(self, make: Callable[[RequestHead], T]) -> T:
        """Return what `make` makes of this head, made once: clients send the same head again and again."""
        derived = self._derived
        if make in derived:
            return derived[make]
        derived[make] = made = make(self)
        return made


class InboundRequest(NamedTuple):
    """One request."""

    head: RequestHead
    body: Frame = b""
    """The whole body, of a route that takes a message."""
    segment: str = ""
    """The last segment of the path, where the route takes any."""
    memory: MessageMemory | None = None
    """What the body takes, where that is counted; whatever outlives the answer holds it."""


def arrival_of(head: RequestHead, route: str, headers: Mapping[str, str] | None = None) -> Arrival:
    """Return how a request arrived; `headers` are those to compare with its message."""
    fields = head.fields
    session = fields.get(b"x-session-id", b"").decode("latin-1")
    arrival = Arrival(
        "http",
        route,
        key_of(head),
        fields.get(b"traceparent", b"").decode("latin-1"),
        session if 0 < len(session) <= _MAX_SESSION else None,
        headers,
    )
    return one_for_equal(arrival)


def one_for_equal(arrival: Arrival) -> Arrival:
    """Return the one object for equal arrivals, unless it is long, or of one trace.

    All that an arrival holds is part of the look-up, and none of it is a verdict: calls check their keys.
    """
    said = () if arrival.headers is None else tuple(arrival.headers.items())
    size = len(arrival.route) + len(arrival.key or "") + sum(len(name) + len(value) for name, value in said)
    if arrival.traceparent or size > _MAX_REMEMBERED:
        return arrival
    has_headers = arrival.headers is not None
    return _remembered(arrival.route, arrival.key, arrival.session, has_headers, said)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(
    route: str, key: str | None, session: str | None, has_headers: bool, said: tuple[tuple[str, str], ...]
) -> Arrival:
    return Arrival("http", route, key, "", session, dict(said) if has_headers else None)


def key_of(head: RequestHead) -> str | None:
    """Return the bearer token of a request; the empty string, never a valid key, for a different scheme."""
    presented = head.fields.get(b"authorization")
    if presented is None:
        return None
    scheme, _, key = presented.decode("utf-8", "replace").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _joined(headers: Headers) -> dict[bytes, bytes]:
    fields = dict(headers)
    if len(fields) == len(headers):
        return fields
    fields.clear()
    for name, value in headers:
        fields[name] = value if name not in fields else fields[name] + b", " + value
    return fields
