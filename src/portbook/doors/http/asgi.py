"""The HTTP door's front: which page or route a request is for, and whether it may be here at all.

Raw ASGI, no framework. A request is refused before anything is read of it where its Host is not ours or its
Origin is another site's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from portbook.net.host_and_origin import Hosts

__all__ = [
    "Application",
    "Headers",
    "Receive",
    "Scope",
    "Send",
    "guarded",
    "plain",
    "respond",
    "route",
]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]


def route(routes: Mapping[tuple[str, str], Application]) -> Application:
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
            await plain(send, 405, f"Use {allowed}.", [(b"allow", allowed.encode())])
        else:
            known = sorted(path for path in methods if not path.endswith("/{}"))
            await plain(send, 404, f"Not found. Try {', '.join(known)}.")

    return app


def guarded(app: Application, hosts: Hosts) -> Application:
    """Return `app` behind the check that a request was meant for this server."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = hosts.refuse(dict(scope["headers"]))
        if refusal is None:
            await app(scope, receive, send)
        else:
            await plain(send, refusal.row.http, str(refusal.details["hint"]))

    return guard


async def respond(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole response."""
    if status != 204:  # which has no body to measure
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def plain(send: Send, status: int, sentence: str, headers: Headers | None = None) -> None:
    """Send one sentence for a person."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *(headers or [])]
    await respond(send, status, headers, f"{sentence}\n".encode())
