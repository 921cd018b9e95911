"""The REST routes: `GET /tools`, `POST /execute` and `POST /tools/NAME`."""

from __future__ import annotations

from typing import Final

from portbook.boundary import Begun, Boundary
from portbook.dialects.rest_bodies import described
from portbook.doors.http.message_route import message_route, refuse_on_record
from portbook.doors.http.request import InboundRequest, arrival_of
from portbook.doors.http.response import Reply, reply_to
from portbook.doors.http.router import Route
from portbook.model import Arrival, JSONObject
from portbook.policy import Policy
from portbook.tools.catalog import Tool
from portbook.wire.lines import Frame

__all__ = ["EXECUTE", "TOOLS", "execute", "tools"]

EXECUTE: Final = "/execute"
TOOLS: Final = "/tools"


def tools(boundary: Boundary) -> Route:
    """Return the route that lists the tools its caller may see."""

    async def serve(request: InboundRequest) -> Reply:
        return reply_to(await boundary.tell("tools", arrival_of(request.head, TOOLS), _listed))

    return Route(serve, refuse_on_record(TOOLS, boundary.refuse_execution))


def _listed(tools: list[Tool], policy: Policy) -> JSONObject:
    return {"tools": [described(tool, policy) for tool in tools]}


def execute(boundary: Boundary) -> Route:
    """Return the route that runs a tool: the one that its path names, or else the one that the body names."""

    def begin(frame: Frame, arrival: Arrival, segment: str) -> Begun:
        return boundary.execute(frame, arrival, segment or None)

    return message_route(EXECUTE, begin, boundary.refuse_execution, boundary.recorder)
