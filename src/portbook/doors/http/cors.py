"""What every HTTP request meets first: one Host, and the rules for pages of other sites (CORS).

A page of an allowed origin may call what callers call, and read the answers. What an operator does, and our
own pages, are shared with nobody. No cookie is ever looked at, so none is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, Final

from portbook.doors.http.asgi import Application, Headers, Receive, Scope, Send, plain, respond
from portbook.errors import Refused
from portbook.net.host_and_origin import Hosts

__all__ = ["behind_front"]

_METHODS: Final = b"GET, POST, DELETE"

# What a page's request may carry; `mcp-` begins names that tools can add to.
_TAKEN: Final = frozenset(
    {"accept", "authorization", "content-type", "last-event-id", "traceparent", "x-session-id"}
)
_TAKEN_PREFIX: Final = "mcp-"

# What a page may read of an answer beside its body.
_SHOWN: Final = b"Mcp-Session-Id, Retry-After, Traceparent, WWW-Authenticate, X-Request-Id"

# How long a browser may remember that it asked; long enough to matter, short enough to change one's mind.
_REMEMBER_S: Final = b"600"


def behind_front(app: Application, hosts: Hosts, is_shared: Callable[[str], bool]) -> Application:
    """Return `app` behind these checks; `is_shared` tells the paths that other sites may call."""

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: Headers = scope["headers"]
        named = sum(name == b"host" for name, _ in headers)
        if named > 1 or (named == 0 and scope.get("http_version") == "1.1"):
            # RFC 9112, 3.2. Which of two was meant would be a matter of who reads it.
            await plain(send, 400, "Send exactly one Host header.", [(b"connection", b"close")])
            return
        origin = next((value for name, value in headers if name == b"origin"), None)
        if origin is None or not is_shared(scope["path"]):
            await app(scope, receive, send)
            return
        given = dict(headers)
        is_question = scope["method"] == "OPTIONS" and b"access-control-request-method" in given
        if is_question and (refusal := hosts.refuse(given)) is not None:
            await plain(send, refusal.row.http, _hint_of(refusal))
        elif not hosts.allows_origin(origin):
            await app(scope, receive, send)  # our own page, or refused there, in its own contract's words
        elif is_question:
            asked = given.get(b"access-control-request-headers", b"")
            await respond(send, 204, [*_shared_with(origin), *_terms(asked)], b"")
        else:
            await app(scope, receive, _telling(send, origin))

    return front


def _hint_of(refusal: Refused) -> str:
    return str(refusal.details.get("hint", refusal.row.sentence))


def _shared_with(origin: bytes) -> Headers:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


def _terms(asked: bytes) -> Headers:
    names = (name.strip().lower() for name in asked.decode("latin-1").split(","))
    taken = [name for name in names if name in _TAKEN or name.startswith(_TAKEN_PREFIX)]
    terms = [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-max-age", _REMEMBER_S),
    ]
    if taken:
        terms.append((b"access-control-allow-headers", ", ".join(taken).encode("latin-1")))
    return terms


def _telling(send: Send, origin: bytes) -> Send:
    """Return `send` that tells the browser who may read what is sent."""
    more: Headers = [*_shared_with(origin), (b"access-control-expose-headers", _SHOWN)]

    async def tell(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event["headers"], *more]}
        await send(event)

    return tell
