"""The Host and Origin check: one middleware in front of every route.

`net/allowed_hosts_and_origins.py` has the rule. It is applied once per request, before the body is read:

1. A request with several Host headers, or an HTTP/1.1 request with none, is refused, whatever its path.
2. For every remaining one `Host` and `Origin` decide.

The verdict is left in the request's scope. `router.py` serves no refused request: it has the route word the
refusal instead.
"""

from __future__ import annotations

from typing import Final

from portbook.doors.http.asgi import Application, Headers, Receive, Scope, Send
from portbook.doors.http.request import headers_of
from portbook.doors.http.response import plain, with_headers
from portbook.errors import Reason, Refused
from portbook.net.allowed_hosts_and_origins import Hosts

__all__ = ["check_host_and_origin", "refusal_of", "refuse_plainly"]

_VERDICT: Final = "portbook.host_and_origin"


def check_host_and_origin(app: Application, hosts: Hosts) -> Application:
    """Return `app` behind the check."""

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: Headers = scope["headers"]
        named = sum(name == b"host" for name, _ in headers)
        if named > 1 or (named == 0 and scope.get("http_version") == "1.1"):
            # RFC 9112, 3.2. A proxy and this server could disagree about which of two counts.
            scope[_VERDICT] = Refused(Reason.BAD_HOST)
            send = with_headers(send, [(b"connection", b"close")])
        else:
            scope[_VERDICT] = hosts.refuse(headers_of(scope))
        await app(scope, receive, send)

    return check


def refusal_of(scope: Scope) -> Refused | None:
    """Return why a request is refused, None if it may be served.

    Raises `KeyError` where the check did not run: an unchecked request is never served.
    """
    return scope[_VERDICT]


async def refuse_plainly(scope: Scope, send: Send, refusal: Refused) -> None:
    """Answer a refused request with one sentence for a person to read."""
    await plain(send, refusal.row.http, str(refusal.details.get("hint", refusal.sentence)))
