"""What every operator route does: it needs the operator key, is recorded, and checks what it is sent.

A question is a GET. A command is a POST with a JSON body that its schema describes; `/openapi.json` shows the
same schema.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from portbook.boundary import Begun, Boundary
from portbook.doors.http.request import InboundRequest, arrival_of
from portbook.doors.http.response import Reply, reply_to
from portbook.doors.http.rest_and_rpc_routes import message_route
from portbook.doors.http.router import Route, Serve
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, Arrival, JSONObject
from portbook.schema.engine import validator_for
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame
from portbook.wire.parsing import parse

__all__ = ["asked", "bad_parameter", "command", "question"]


def question(
    boundary: Boundary, path: str, method: str, answer: Callable[[InboundRequest], Awaitable[JSON]]
) -> Serve:
    """Return what answers a GET at `path`; the record calls it `method`."""

    async def serve(request: InboundRequest) -> Reply:
        async def act() -> JSON:
            return await answer(request)

        return reply_to(await boundary.operate(method, arrival_of(request.head, path), act))

    return serve


def command(
    boundary: Boundary,
    path: str,
    method: str,
    schema: JSONObject,
    perform: Callable[[JSONObject, str], Awaitable[JSON]],
    *,
    decides: str | None = None,
    segment_is: str = "",
) -> Route:
    """Return the route of a POST at `path`; `perform` gets its body and the last segment of its path.

    Where the member `decides` of the body is the operator's decision, the record has it, and the whole body
    with the segment, called `segment_is`.
    """

    def begin(frame: Frame, arrival: Arrival, segment: str) -> Begun:
        body, flaw = _read(frame, schema)

        async def act() -> JSON:
            if flaw is not None:
                raise flaw
            return await perform(body, segment)

        says = None if decides is None or flaw is not None else str(body[decides])
        about = {segment_is: segment, **body} if segment_is else body
        return boundary.operate(method, arrival, act, says=says, about=about)

    return message_route(path, begin, boundary.refuse_execution, boundary.recorder)


def asked(request: InboundRequest) -> dict[str, str]:
    """Return the query by name; a name without a value asks for nothing."""
    return dict(parse_qsl(request.head.query.decode("latin-1")))


def bad_parameter(name: str, problem: str) -> Refused:
    """Return the refusal of one member of a body or a query."""
    return Refused(Reason.BAD_PARAMS, (Finding(f"/{name}", problem, "query", ""),))


def _read(frame: Frame, schema: JSONObject) -> tuple[JSONObject, Refused | None]:
    """Return the body, and why it cannot be used; then the body is empty."""
    if frame is OVERSIZE:
        return {}, Refused(Reason.FRAME_TOO_LARGE)
    try:
        body = parse(frame)
    except Refused as refused:
        return {}, refused
    validator = validator_for(schema)
    if not isinstance(body, dict) or not validator.allows(body):
        return {}, Refused(Reason.BAD_PARAMS, validator.findings(body))
    return body, None
