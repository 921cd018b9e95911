"""The HTTP door's front: which page or route a request is for, and whether it may be here at all.

Raw ASGI, no framework. A request is refused before anything is read of it where its Host is not ours (a
page of another site whose name was pointed at this machine) or its Origin is another site's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from portbook.errors import REASONS, Reason

__all__ = [
    "App",
    "Headers",
    "Receive",
    "Scope",
    "Send",
    "guarded",
    "is_own_host",
    "plain",
    "respond",
    "route",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

# Clients send the same Host always: what it means is looked at once, unless it is long enough to fill memory.
_MAX_REMEMBERED: Final = 512


def route(routes: Mapping[tuple[str, str], App]) -> App:
    """Return the application that hands each request to the one for its method and path.

    A path that ends in `/{}` takes any last segment, which is then `scope["portbook.segment"]`.
    """
    methods: dict[str, list[str]] = {}
    for method, path in routes:
        methods.setdefault(path, []).append(method)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if path not in methods:
            folder, _, segment = path.rpartition("/")
            if segment and f"{folder}/{{}}" in methods:
                path, scope["portbook.segment"] = f"{folder}/{{}}", segment
        handler = routes.get((scope["method"], path))
        if handler is not None:
            await handler(scope, receive, send)
        elif path in methods:
            allowed = ", ".join(methods[path])
            await plain(send, 405, f"This takes {allowed}.", [(b"allow", allowed.encode())])
        else:
            known = sorted(path for path in methods if not path.endswith("/{}"))
            await plain(send, 404, f"Nothing here. Try {', '.join(known)}.")

    return app


def guarded(app: App, *, is_exposed: bool) -> App:
    """Return `app` behind the check that a request was meant for this server."""
    row = REASONS[Reason.FOREIGN_HOST]

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if is_own_host(dict(scope["headers"]), is_exposed=is_exposed):
            await app(scope, receive, send)
        else:
            await plain(send, row.http, row.sentence)

    return guard


def is_own_host(headers: Mapping[bytes, bytes], *, is_exposed: bool) -> bool:
    """Return whether a request was meant for this server.

    1. Bound to loopback, its Host is one of loopback's names: no other name can have been meant.
    2. Its Origin, where a browser sent one, is the Host itself: no other site's page may call tools.
    """
    host, origin = headers.get(b"host", b""), headers.get(b"origin")
    if len(host) + len(origin or b"") > _MAX_REMEMBERED:
        return _is_meant.__wrapped__(host, origin, is_exposed)
    return _is_meant(host, origin, is_exposed)


@lru_cache(maxsize=256)
def _is_meant(raw_host: bytes, raw_origin: bytes | None, is_exposed: bool) -> bool:
    host = raw_host.decode("latin-1")
    try:
        if not is_exposed and not _is_loopback(urlsplit(f"//{host}").hostname):
            return False
        return raw_origin is None or urlsplit(raw_origin.decode("latin-1")).netloc == host
    except ValueError:  # not even an address
        return False


def _is_loopback(name: str | None) -> bool:
    if name is None or name == "localhost":
        return name is not None
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


async def respond(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole response."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def plain(send: Send, status: int, sentence: str, headers: Headers | None = None) -> None:
    """Send one sentence for a person."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *(headers or [])]
    await respond(send, status, headers, f"{sentence}\n".encode())
