"""CORS: which pages of different sites may call this server, and read its answers. Pure: no I/O.

A page of an allowed origin may call what callers call. Operator routes and our own pages are never shared.
Cookies are never read, so none are requested. Whether a request is refused is decided in
`router.py`.
"""

from __future__ import annotations

from typing import Final

from portbook.doors.http.request import Headers, RequestHead
from portbook.doors.http.response import lines_of

__all__ = ["is_preflight", "is_shared_path", "sharing_lines", "sharing_terms"]

# What pages of allowed origins may call: what callers use, nothing else. And all that begins with the last.
_SHARED_PATHS: Final = ("/mcp", "/rpc", "/execute", "/tools", "/openapi.json", "/sse", "/messages")
_SHARED_FOLDER: Final = "/tools/"

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


def is_shared_path(path: str) -> bool:
    """Return whether pages of allowed origins may call a path."""
    return path in _SHARED_PATHS or path.startswith(_SHARED_FOLDER)


def is_preflight(head: RequestHead) -> bool:
    """Return whether a browser asks what a page of a different site may send."""
    return (
        head.method == "OPTIONS"
        and b"access-control-request-method" in head.fields
        and b"origin" in head.fields
    )


def sharing_lines(origin: bytes) -> bytes:
    """Return the headers of an answer that let a page of `origin` read it."""
    return lines_of([*_shared_with(origin), (b"access-control-expose-headers", _SHOWN)])


def sharing_terms(head: RequestHead) -> bytes:
    """Return the headers of the answer to a preflight."""
    requested = head.fields.get(b"access-control-request-headers", b"").decode("latin-1")
    names = (name.strip().lower() for name in requested.split(","))
    taken = [name for name in names if name in _TAKEN or name.startswith(_TAKEN_PREFIX)]
    terms = [
        *_shared_with(head.fields[b"origin"]),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-max-age", _REMEMBER_S),
    ]
    if taken:
        terms.append((b"access-control-allow-headers", ", ".join(taken).encode("latin-1")))
    return lines_of(terms)


def _shared_with(origin: bytes) -> Headers:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
