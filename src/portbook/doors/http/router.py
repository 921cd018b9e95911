"""The router: finds what answers a request, by its head alone, or refuses it. Pure: no I/O.

A refused request never reaches `Route.serve`, whatever the route: it goes to `Route.refuse`, which a route
sets to word the refusal its own way, and to record it. So does a message that was sent by the wrong HTTP
method, or that is not declared as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from portbook.doors.http.cors import is_preflight, sharing_lines, sharing_terms
from portbook.doors.http.memory_limits import MessageMemory
from portbook.doors.http.request import InboundRequest, RequestHead, refuse_content
from portbook.doors.http.response import HeldReply, Replied, Reply, Replying, problem, refusal
from portbook.errors import Reason, Refused
from portbook.net.allowed_hosts_and_origins import Hosts
from portbook.text.named_tuple import new_tuple
from portbook.wire.lines_and_size_limit import Frame

__all__ = [
    "Handling",
    "Refuse",
    "Route",
    "Router",
    "Serve",
    "begin_reply",
    "finish_reply",
    "refuse_head",
    "refuse_method",
    "refuse_repeated",
    "released",
]

# What follows such a head may belong to it or not, by which of two readings counts: nothing of it is read.
_AMBIGUOUS: Final = (Reason.BAD_HOST, Reason.REPEATED_HEADER)

Serve: TypeAlias = Callable[[InboundRequest], Replied]
Refuse: TypeAlias = Callable[[RequestHead, Refused], Replying]


async def _refuse_plainly(_head: RequestHead, refused: Refused) -> Reply:
    return refusal(refused)


class Route(NamedTuple):
    """What serves a request, and what answers one that is refused."""

    serve: Serve
    refuse: Refuse = _refuse_plainly
    takes_message: bool = False
    """Whether the request carries a message, which is read whole before it is served."""


class Handling(NamedTuple):
    """How one request is answered."""

    serve: Serve
    refuse: Refuse
    """Answers a request whose body is too slow or cut off."""
    takes_message: bool
    """Whether to read the body first; otherwise it is answered without it."""
    segment: str
    more: bytes = b""
    """Further headers of the reply, as they stand in it."""
    closes: bool = False
    """Whether the connection closes after the reply, whatever that is."""


class Router:
    """All routes, by method and path."""

    def __init__(
        self,
        routes: Mapping[tuple[str, str], Route],
        hosts: Hosts,
        is_shared: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Take the routes; `is_shared` tells the paths that pages of different sites may call.

        A path that ends in `/{}` takes any last segment.
        """
        self._routes = routes
        self._hosts = hosts
        self._is_shared = is_shared
        self._methods: dict[str, list[str]] = {}
        for method, path in routes:
            self._methods.setdefault(path, []).append(method)

    def handle(self, head: RequestHead) -> Handling:
        """Return how a request is answered."""
        refused = refuse_head(head, self._hosts)
        origin = head.fields.get(b"origin")
        more = b""
        if origin is not None and self._is_shared(head.path):
            if is_preflight(head) and refused is not None:
                return _answered(_refuse_plainly, refused, more)
            if self._hosts.allows_origin(origin):
                if is_preflight(head):
                    return _ready(Reply(204, sharing_terms(head)))
                more = sharing_lines(origin)
        return self._routed(head, refused, more)

    def _routed(self, head: RequestHead, refused: Refused | None, more: bytes) -> Handling:
        path, segment = self._place(head.path)
        route = self._routes.get((head.method, path))
        if route is not None:
            if refused is None and route.takes_message:
                refused = refuse_content(head)
            if refused is not None:
                return _answered(route.refuse, refused, more)
            return Handling(route.serve, route.refuse, route.takes_message, segment, more)
        if refused is not None and refused.reason is not Reason.FOREIGN_HOST:
            return _answered(_refuse_plainly, refused, more)
        if path in self._methods:
            allowed = self._methods[path]
            # The last is the one that takes messages, where one does.
            serve = partial(_refuse_method, self._routes[allowed[-1], path].refuse, allowed)
            return Handling(serve, _refuse_plainly, takes_message=False, segment="", more=more)
        known = ", ".join(sorted(each for each in self._methods if not each.endswith("/{}")))
        return _ready(problem(404, "NOT_FOUND", f"Nothing is served here. Try {known}."), more)

    def _place(self, path: str) -> tuple[str, str]:
        """Return the path of a route, and the segment that it leaves open."""
        if path not in self._methods:
            folder, _, segment = path.rpartition("/")
            if segment and f"{folder}/{{}}" in self._methods:
                return f"{folder}/{{}}", segment
        return path, ""


def begin_reply(
    handling: Handling, head: RequestHead, body: Frame | Refused, memory: MessageMemory | None = None
) -> Replied:
    """Return the reply to a request with this body, or to one whose body is refused; or what it waits for."""
    try:
        if isinstance(body, Refused):
            return handling.refuse(head, body)
        return handling.serve(new_tuple(InboundRequest, (head, body, handling.segment, memory)))
    except Exception:  # noqa: BLE001 - a bug of ours is answered, and takes no other request with it
        return _failed()


def released(held: HeldReply) -> Reply:
    """Return a reply that was held back, now that the record of its call is written."""
    try:
        return held.worded(held.call.reply())
    except Exception:  # noqa: BLE001 - as above
        return _failed()


async def finish_reply(replied: Replied) -> Reply:
    """Return the reply, once it is there and the record of its call is written."""
    if isinstance(replied, HeldReply):
        replied.records.flush()
        return released(replied)
    try:
        return replied if isinstance(replied, Reply) else await replied
    except Exception:  # noqa: BLE001 - as above
        return _failed()


async def refuse_method(refuse: Refuse, head: RequestHead, allowed: list[str], condition: str = "") -> Reply:
    """Answer a request by the wrong HTTP method; `refuse` words and records one that carries a message."""
    names = ", ".join(allowed)
    allow = f"allow: {names}\r\n".encode()
    sentence = f"{condition}, use {names}." if condition else f"Use {names}."
    refused = Refused(Reason.WRONG_HTTP_METHOD, details={"hint": sentence})
    if not head.announces_body:
        return refusal(refused, allow)
    reply = await refuse(head, refused)
    return reply._replace(lines=reply.lines + allow)


def _failed() -> Reply:
    return problem(500, "INTERNAL_ERROR", "The server failed to answer.", closes=True)


async def _refuse_method(refuse: Refuse, allowed: list[str], request: InboundRequest) -> Reply:
    return await refuse_method(refuse, request.head, allowed)


def _answered(refuse: Refuse, refused: Refused, more: bytes) -> Handling:
    async def serve(request: InboundRequest) -> Reply:
        return await refuse(request.head, refused)

    closes = refused.reason in _AMBIGUOUS
    return Handling(serve, refuse, takes_message=False, segment="", more=more, closes=closes)


def _ready(reply: Reply, more: bytes = b"") -> Handling:
    async def serve(_request: InboundRequest) -> Reply:
        return reply

    return Handling(serve, _refuse_plainly, takes_message=False, segment="", more=more)


# The check of every head, before its body is read, whatever its path.
#
# 1. A request with several Host headers, or an HTTP/1.1 request with none, is refused.
# 2. So is one that repeats a header of which one value counts.
# 3. For every remaining one `Host` and `Origin` decide; `net/allowed_hosts_and_origins.py` has the rule.
#
# `router.py` serves no refused request: it has the route word the refusal instead.

_HOST: Final = b"host"


def refuse_head(head: RequestHead, hosts: Hosts) -> Refused | None:
    """Return why a request is refused, None if it may be served."""
    fields = head.fields
    if len(fields) < len(head.headers):
        names = [name for name, _ in head.headers]
        if names.count(_HOST) > 1:
            return Refused(Reason.BAD_HOST)
        if (refused := refuse_repeated(names)) is not None:
            return refused
    if _HOST not in fields and head.version == "1.1":  # RFC 9112, 3.2
        return Refused(Reason.BAD_HOST)
    return hosts.refuse(fields)


# Headers that may be sent once only: a proxy and this server could disagree about which one counts.

# The headers that a route, a dialect or the connection reads one value of.
_SINGULAR: Final = frozenset(
    {
        b"access-control-request-method",
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"last-event-id",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"origin",
        b"transfer-encoding",
        b"x-session-id",
    }
)


def refuse_repeated(names: Sequence[bytes]) -> Refused | None:
    """Return why a request with these headers is refused, None if each is there as often as it may be."""
    repeated = next((name for name in names if name in _SINGULAR and names.count(name) > 1), None)
    if repeated is None:
        return None
    hint = f"The header {repeated.decode()} may be sent once only."
    return Refused(Reason.REPEATED_HEADER, details={"hint": hint})
