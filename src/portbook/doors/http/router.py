"""The router: hands each request to the route for its method and path, unless the request is refused.

A refused request never reaches `Route.serve`, whatever the route: it goes to `Route.refuse`, which a route
sets to word the refusal its own way, and to record it. So does a message that was sent by the wrong HTTP
method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from portbook.doors.http.asgi import Application, Headers, Receive, Scope, Send
from portbook.doors.http.host_and_origin_check import refusal_of, refuse_plainly
from portbook.doors.http.request import has_body, headers_of
from portbook.doors.http.response import plain, with_headers
from portbook.errors import Reason, Refused

__all__ = ["Refuse", "Route", "refuse_method", "router", "segment_of"]

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
        refusal = refusal_of(scope)
        if route is not None and refusal is None:
            await route.serve(scope, receive, send)
        elif route is not None and refusal is not None:
            await route.refuse(scope, send, refusal)
        elif refusal is not None and refusal.reason is Reason.BAD_HOST:
            await refuse_plainly(scope, send, refusal)
        elif path in methods:
            *_, last = methods[path]  # the one that takes messages, where one does
            await refuse_method(routes[last, path].refuse, scope, send, methods[path])
        else:
            known = sorted(path for path in methods if not path.endswith("/{}"))
            await plain(send, 404, f"Not found. Try {', '.join(known)}.")

    return app


async def refuse_method(
    refuse: Refuse, scope: Scope, send: Send, allowed: list[str], condition: str = ""
) -> None:
    """Answer a request by the wrong HTTP method; `refuse` words and records one that carries a message."""
    names = ", ".join(allowed)
    allow: Headers = [(b"allow", names.encode())]
    sentence = f"{condition}, use {names}." if condition else f"Use {names}."
    if has_body(headers_of(scope)):
        refusal = Refused(Reason.WRONG_HTTP_METHOD, details={"hint": sentence})
        await refuse(scope, with_headers(send, allow), refusal)
    else:
        await plain(send, 405, sentence, allow)


def segment_of(scope: Scope) -> str:
    """Return the last segment of the path, where the route takes any; else the empty string."""
    return scope.get(_SEGMENT, "")
