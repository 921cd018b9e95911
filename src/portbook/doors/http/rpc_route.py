"""`POST /rpc`: one JSON-RPC message per request, one answer per response."""

from __future__ import annotations

from typing import Final

from portbook.boundary import Begun, Boundary
from portbook.doors.http.message_route import message_route
from portbook.doors.http.router import Route
from portbook.model import Arrival
from portbook.wire.lines_and_size_limit import Frame

__all__ = ["ROUTE", "rpc"]

ROUTE: Final = "/rpc"


def rpc(boundary: Boundary) -> Route:
    """Return the route."""

    def begin(frame: Frame, arrival: Arrival, _segment: str) -> Begun:
        return boundary.begin(frame, arrival)

    return message_route(ROUTE, begin, boundary.refuse, boundary.recorder)
