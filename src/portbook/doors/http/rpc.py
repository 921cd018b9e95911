"""`POST /rpc`: one JSON-RPC message per request, one answer per response."""

from __future__ import annotations

from typing import Final

from portbook.boundary import Boundary
from portbook.doors.http.message_route import Answering, message_route
from portbook.doors.http.router import Route
from portbook.model import Arrival
from portbook.wire.lines import Frame

__all__ = ["ROUTE", "rpc"]

ROUTE: Final = "/rpc"


def rpc(boundary: Boundary) -> Route:
    """Return the route."""

    def answer(frame: Frame, arrival: Arrival, _segment: str) -> Answering:
        return boundary.answer(frame, arrival)

    return message_route(ROUTE, answer, boundary.refuse)
