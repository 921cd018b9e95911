"""REST and JSON-RPC: `GET /tools`, `GET /tools/NAME`, `POST /execute`, `POST /tools/NAME`, `POST /rpc`.

`message_route` builds one: the message is refused or answered, and recorded either way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

from portbook.boundary import Begun, Boundary
from portbook.dialects.rest_bodies import described
from portbook.doors.http.request import InboundRequest, RequestHead, arrival_of
from portbook.doors.http.response import HeldReply, Replied, Reply, reply_to
from portbook.doors.http.router import Refuse, Route
from portbook.errors import Reason, Refused
from portbook.model import JSON, Answer, Arrival, JSONObject
from portbook.policy import Policy
from portbook.stages.recorder import Recorder
from portbook.stages.state import CallState
from portbook.text.named_tuple import new_tuple
from portbook.tools.catalog import Tool
from portbook.tools.tool_names import slug_of
from portbook.wire.lines_and_size_limit import Frame

__all__ = [
    "EXECUTE",
    "ROUTE",
    "TOOLS",
    "brief_entry",
    "execute",
    "message_route",
    "refuse_on_record",
    "rpc",
    "tool",
    "tools",
    "whole_entry",
]

EXECUTE: Final = "/execute"
TOOLS: Final = "/tools"


def tools(boundary: Boundary) -> Route:
    """Return the route that lists the tools its caller may see; with `?brief=1`, without their schemas."""

    async def serve(request: InboundRequest) -> Reply:
        is_brief = parse_qs(request.head.query.decode("latin-1")).get("brief") == ["1"]
        listed = _listed_briefly if is_brief else _listed
        return reply_to(await boundary.tell("tools", arrival_of(request.head, TOOLS), listed))

    return Route(serve, refuse_on_record(TOOLS, boundary.refuse_execution))


def _listed(tools: list[Tool], policy: Policy) -> JSONObject:
    return {"tools": [described(tool, policy) for tool in tools]}


def _listed_briefly(tools: list[Tool], _policy: Policy) -> JSONObject:
    return {"tools": [brief_entry(tool) for tool in tools]}


def tool(boundary: Boundary) -> Route:
    """Return the route that describes one tool to a caller that may see it."""

    async def serve(request: InboundRequest) -> Reply:
        described = partial(_described, request.segment)
        return reply_to(await boundary.tell("tools.describe", arrival_of(request.head, TOOLS), described))

    return Route(serve, refuse_on_record(TOOLS, boundary.refuse_execution))


def _described(name: str, tools: list[Tool], policy: Policy) -> JSONObject:
    found = next((tool for tool in tools if tool.spec.name == slug_of(name)), None)
    if found is None:
        raise Refused(Reason.UNKNOWN_TOOL)
    return whole_entry(found, policy)


def execute(boundary: Boundary) -> Route:
    """Return the route that runs a tool: the one that its path names, or else the one that the body names."""

    def begin(frame: Frame, arrival: Arrival, segment: str) -> Begun:
        return boundary.execute(frame, arrival, segment or None)

    return message_route(EXECUTE, begin, boundary.refuse_execution, boundary.recorder)


# Tools as pages need them: many in short, and one with a schema that a form is made of.


def brief_entry(tool: Tool) -> JSONObject:
    """Return the entry of a tool in `GET /tools?brief=1`: without schemas, with the group it belongs to."""
    spec = tool.spec
    return {
        "tool_id": spec.identifier,
        "name": spec.name,
        "description": spec.description.partition("\n")[0],
        "effect": spec.effect.value,
        "timeout_ms": spec.timeout_ms,
        **_place(tool),
    }


def whole_entry(tool: Tool, policy: Policy) -> JSONObject:
    """Return the answer of `GET /tools/NAME`: the entry of `GET /tools`, and what a form is made of."""
    from portbook.schema.references import inlined_references  # late: only for forms

    return {
        **described(tool, policy),
        **_place(tool),
        "listed": tool.listed,
        "args_form": inlined_references(tool.spec.input_schema),
    }


def _place(tool: Tool) -> JSONObject:
    """Return what people find a tool by."""
    spec = tool.spec
    source, group = "python", spec.name.rpartition(".")[0]
    if spec.operation is not None:
        source, group = "http", spec.operation.gateway
    elif spec.upstream is not None:
        source, group = "mcp", spec.upstream.server
    tags: list[JSON] = [*spec.tags]
    return {"title": spec.shown.get("title"), "source": source, "group": group, "tags": tags}


# `POST /rpc`: one JSON-RPC message per request, one answer per response.

ROUTE: Final = "/rpc"


def rpc(boundary: Boundary) -> Route:
    """Return the route."""

    def begin(frame: Frame, arrival: Arrival, _segment: str) -> Begun:
        return boundary.begin(frame, arrival)

    return message_route(ROUTE, begin, boundary.refuse, boundary.recorder)


# A route that takes a message: refused or answered, and recorded either way.

Answering: TypeAlias = Coroutine[Any, Any, Answer]


def message_route(
    path: str,
    begin: Callable[[Frame, Arrival, str], Begun],
    refuse: Callable[[Refused, Arrival], Answering],
    recorder: Recorder,
) -> Route:
    """Return the route at `path`, which reads one message and replies with the answer to its call.

    `begin` also gets the last segment of the path; `recorder` holds the record of a call that ends at once.
    `refuse` records and words a request that is refused unread: its Host or Origin is foreign, or its body is
    not JSON, too slow or cut off.
    """

    def arrive(head: RequestHead) -> Arrival:
        return arrival_of(head, path)

    def serve(request: InboundRequest) -> Replied:
        head, frame, segment, _ = request
        recorder.hold()
        try:
            begun = begin(frame, head.derive(arrive), segment)
        finally:
            recorder.release()
        if isinstance(begun, CallState):
            return new_tuple(HeldReply, (recorder, begun, reply_to))
        return _replied(begun)

    return Route(serve, refuse_on_record(path, refuse), takes_message=True)


async def _replied(answering: Answering) -> Reply:
    return reply_to(await answering)


def refuse_on_record(path: str, refuse: Callable[[Refused, Arrival], Answering]) -> Refuse:
    """Return what answers a refused request at `path` in the words of `refuse`, which records it."""

    async def refuse_request(head: RequestHead, refused: Refused) -> Reply:
        return reply_to(await refuse(refused, arrival_of(head, path)))

    return refuse_request
