"""`POST /rpc`: one JSON-RPC message a request, one answer a response."""

from __future__ import annotations

from typing import Final

from portbook.boundary import Boundary
from portbook.doors.http.asgi import Application, Receive, Scope, Send
from portbook.doors.http.request import arrival_of, serve_message
from portbook.net.host_and_origin import Hosts

__all__ = ["ROUTE", "rpc"]

ROUTE: Final = "/rpc"


def rpc(boundary: Boundary, hosts: Hosts) -> Application:
    """Return the application behind the route."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await serve_message(
            scope,
            receive,
            send,
            arrival=arrival_of(scope, ROUTE),
            hosts=hosts,
            answer=boundary.answer,
            refuse=boundary.refuse,
        )

    return app
