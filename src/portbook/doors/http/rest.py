"""The REST routes: `GET /tools`, `POST /execute` and `POST /tools/NAME`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from portbook.boundary import Boundary
from portbook.dialects.rest import described
from portbook.doors.http.asgi import Application, Receive, Scope, Send
from portbook.doors.http.request import arrival_of, send_answer, serve_message
from portbook.model import Answer, Arrival, JSONObject
from portbook.net.host_and_origin import Hosts
from portbook.policy import Policy
from portbook.tools.catalog import Tool
from portbook.wire.framing import Frame

__all__ = ["EXECUTE", "TOOLS", "execute", "execute_tool", "tools"]

EXECUTE: Final = "/execute"
TOOLS: Final = "/tools"


def tools(boundary: Boundary, hosts: Hosts) -> Application:
    """Return the application that lists the tools which its caller may see."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        arrival = arrival_of(scope, TOOLS)
        refusal = hosts.refuse(dict(scope["headers"]))
        if refusal is None:
            await send_answer(send, await boundary.tell("tools", arrival, _listed))
        else:
            await send_answer(send, await boundary.refuse_execution(refusal, arrival))

    return app


def _listed(tools: list[Tool], policy: Policy) -> JSONObject:
    return {"tools": [described(tool, policy) for tool in tools]}


def execute(boundary: Boundary, hosts: Hosts) -> Application:
    """Return the application that runs the tool which the body names."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await serve_message(
            scope,
            receive,
            send,
            arrival=arrival_of(scope, EXECUTE),
            hosts=hosts,
            answer=boundary.execute,
            refuse=boundary.refuse_execution,
        )

    return app


def execute_tool(boundary: Boundary, hosts: Hosts) -> Application:
    """Return the application that runs the tool which the path names."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        tool: str = scope["portbook.segment"]

        def answer(frame: Frame, arrival: Arrival) -> Coroutine[Any, Any, Answer]:
            return boundary.execute(frame, arrival, tool)

        await serve_message(
            scope,
            receive,
            send,
            arrival=arrival_of(scope, EXECUTE),
            hosts=hosts,
            answer=answer,
            refuse=boundary.refuse_execution,
        )

    return app
