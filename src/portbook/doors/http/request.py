"""A request, as every route sees it: its head, its body within the limits, who sent it, what it accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from portbook.doors.http.memory_limits import MessageMemory
from portbook.errors import Reason, Refused
from portbook.model import Arrival
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, Frame

__all__ = [
    "AUTHORITY",
    "EVERYTHING",
    "MAX_DISCARDED_BYTES",
    "Accepts",
    "Headers",
    "InboundRequest",
    "RequestHead",
    "accepted",
    "arrival_of",
    "cut_off",
    "key_of",
    "one_for_equal",
    "refuse_content",
    "wants_page",
]

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


# Which media types a request accepts, by its Accept header.

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_PAGE: Final = "text/html"

# Clients always send the same header: it is parsed once, unless it is long enough to fill memory.
_MAX_REMEMBERED_ACCEPT: Final = 512


class Accepts(NamedTuple):
    """Whether an answer may be a JSON document, and whether it may be a stream of events."""

    json: bool
    events: bool


EVERYTHING: Final = Accepts(json=True, events=True)


def accepted(header: bytes | None) -> Accepts:
    """Return what a header accepts; everything without a header."""
    if header is None:
        return EVERYTHING
    return _read(header) if len(header) <= _MAX_REMEMBERED_ACCEPT else _read.__wrapped__(header)


def wants_page(header: bytes | None) -> bool:
    """Return whether HTML is accepted by name and not less than JSON: browsers send that, programs do not."""
    weights = _weights(header or b"")
    return weights.get(_PAGE, 0) > 0 and weights[_PAGE] >= weights.get(_JSON, 0)


@lru_cache(maxsize=256)
def _read(header: bytes) -> Accepts:
    weights = _weights(header)
    return Accepts(_allows(weights, _JSON), _allows(weights, _EVENTS))


def _weights(header: bytes) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in header.decode("latin-1").split(","):
        media, *parameters = (each.strip().lower() for each in part.split(";"))
        weights[media] = _weight(parameters)
    return weights


def _allows(weights: dict[str, float], form: str) -> bool:
    """Return whether the most specific media range that includes `form` has a weight above zero."""
    for media in (form, form.partition("/")[0] + "/*", "*/*"):
        if media in weights:
            return weights[media] > 0
    return False


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:  # ignored
                return 1.0
    return 1.0


# Whether the body of a request is declared as what is read here: JSON in UTF-8, as it is.
#
# It also has what becomes of bodies that nobody wants, or that never come to their end.

_JSON_MEDIA: Final = b"application/json"
_IDENTITY: Final = b"identity"
_UTF_8: Final = (b"utf-8", b"utf8")


def refuse_content(head: RequestHead) -> Refused | None:
    """Return the refusal of a body that is declared as something else, None if it may be read."""
    fields = head.fields
    media, *parameters = fields.get(b"content-type", b"").split(b";")
    if media.strip().lower() != _JSON_MEDIA:
        return Refused(Reason.NOT_JSON_CONTENT)
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip().lower() == b"charset" and value.strip().strip(b'"').lower() not in _UTF_8:
            return _refused("JSON is read in UTF-8. Omit the charset.")
    if fields.get(b"content-encoding", _IDENTITY).lower() != _IDENTITY:
        return _refused("A compressed body is not read. Send it without Content-Encoding.")
    return None


def _refused(hint: str) -> Refused:
    return Refused(Reason.NOT_JSON_CONTENT, details={"hint": hint})


# A body that nobody wants is read and discarded, so that the client gets the answer; up to this many bytes.
MAX_DISCARDED_BYTES: Final = 128 * MAX_FRAME_BYTES


def cut_off() -> Refused:
    """Return the refusal of a message whose end never came."""
    return Refused(Reason.CANCELLED, note="the client left in the middle of its message")
