"""CORS: which pages of different sites may call this server, and read its answers.

A page of an allowed origin may call what callers call. Operator routes and our own pages are never shared.
Cookies are never read, so none are requested. Whether a request is refused is decided before this, in
`host_and_origin_check.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from portbook.doors.http.asgi import Application, Headers, Receive, Scope, Send
from portbook.doors.http.host_and_origin_check import refusal_of, refuse_plainly
from portbook.doors.http.response import respond, with_headers
from portbook.net.allowed_hosts_and_origins import Hosts

__all__ = ["with_cors"]

_METHODS: Final = b"GET, POST, DELETE"

# What a page's request may carry; `mcp-` starts the names of headers that tools define.
_TAKEN: Final = frozenset(
    {"accept", "authorization", "content-type", "last-event-id", "traceparent", "x-session-id"}
)
_TAKEN_PREFIX: Final = "mcp-"

# Which headers of an answer a page may read.
_SHOWN: Final = b"Mcp-Session-Id, Portbook-Redacted, Retry-After, Traceparent, WWW-Authenticate, X-Request-Id"

# How long a browser may cache a preflight answer; short enough that a changed setting takes effect soon.
_REMEMBER_S: Final = b"600"


def with_cors(app: Application, hosts: Hosts, is_shared: Callable[[str], bool]) -> Application:
    """Return `app` with CORS; `is_shared` tells the paths that pages of different sites may call."""

    async def share(scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = scope["headers"]
        origin = next((value for name, value in headers if name == b"origin"), None)
        if origin is None or not is_shared(scope["path"]):
            await app(scope, receive, send)
            return
        given = dict(headers)
        is_preflight = scope["method"] == "OPTIONS" and b"access-control-request-method" in given
        if is_preflight and (refusal := refusal_of(scope)) is not None:
            await refuse_plainly(scope, send, refusal)
        elif not hosts.allows_origin(origin):
            await app(scope, receive, send)  # our own page, or one that its route refuses in its own words
        elif is_preflight:
            requested = given.get(b"access-control-request-headers", b"")
            await respond(send, 204, [*_shared_with(origin), *_terms(requested)], b"")
        else:
            await app(scope, receive, _sharing(send, origin))

    return share


def _shared_with(origin: bytes) -> Headers:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def _terms(requested: bytes) -> Headers:
    names = (name.strip().lower() for name in requested.decode("latin-1").split(","))
    taken = [name for name in names if name in _TAKEN or name.startswith(_TAKEN_PREFIX)]
    terms = [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-max-age", _REMEMBER_S),
    ]
    if taken:
        terms.append((b"access-control-allow-headers", ", ".join(taken).encode("latin-1")))
    return terms


def _sharing(send: Send, origin: bytes) -> Send:
    """Return `send`, with the headers that let a page of `origin` read what is sent."""
    return with_headers(send, [*_shared_with(origin), (b"access-control-expose-headers", _SHOWN)])
