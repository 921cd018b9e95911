"""The router: hands each request to the route for its method and path, unless the request is refused.

A refused request never reaches `Route.serve`, whatever the route: it goes to `Route.refuse`, which a route
sets to word the refusal its own way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from portbook.doors.http.asgi import Application, Receive, Scope, Send
from portbook.doors.http.host_and_origin_check import refusal_of, refuse_plainly
from portbook.doors.http.response import plain
from portbook.errors import Refused

__all__ = ["Refuse", "Route", "router", "segment_of"]

_SEGMENT: Final = "portbook.segment"

Refuse: TypeAlias = Callable[[Scope, Send, Refused], Awaitable[None]]


class Route(NamedTuple):
    """What serves a request, and what answers one whose Host or Origin is refused."""

    serve: Application
    refuse: Refuse = refuse_plainly


def router(routes: Mapping[tuple[str, str], Route]) -> Application:
    """Return the application with these routes, by method and path.

    A path that ends in `/{}` takes any last segment; `segment_of` returns it.
    """
    methods: dict[str, list[str]] = {}
    for method, path in routes:
        methods.setdefault(path, []).append(method)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path not in methods:
            folder, _, segment = path.rpartition("/")
            if segment and f"{folder}/{{}}" in methods:
                path, scope[_SEGMENT] = f"{folder}/{{}}", segment
        route = routes.get((scope["method"], path))
        if route is not None:
            refusal = refusal_of(scope)
            if refusal is None:
                await route.serve(scope, receive, send)
            else:
                await route.refuse(scope, send, refusal)
        elif path in methods:
            allowed = ", ".join(methods[path])
            await plain(send, 405, f"Use {allowed}.", [(b"allow", allowed.encode())])
        else:
            known = sorted(path for path in methods if not path.endswith("/{}"))
            await plain(send, 404, f"Not found. Try {', '.join(known)}.")

    return app


def segment_of(scope: Scope) -> str:
    """Return the last segment of the path, where the route takes any; else the empty string."""
    return scope.get(_SEGMENT, "")
