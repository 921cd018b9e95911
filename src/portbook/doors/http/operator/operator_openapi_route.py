"""`GET /operator/openapi.json`: every route that operators use, described once, as OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from portbook.access.approval_state_and_binding import DECISIONS, State
from portbook.app.running_app import App
from portbook.audit.call_index_filters_and_figures import FILTERS
from portbook.doors.http.operator.call_and_figure_routes import CALLS, FIGURES
from portbook.doors.http.operator.event_route import EVENTS
from portbook.doors.http.operator.operator_route import question
from portbook.doors.http.operator.pin_routes import PINS, REVIEW
from portbook.doors.http.operator.policy_routes import EXPLAIN, POLICY, QUESTION, REPLAY, TRIAL
from portbook.doors.http.operator.proof_route import PROOF
from portbook.doors.http.operator.upstream_routes import RESTART, UPSTREAMS
from portbook.doors.http.operator.waiting_route import WAITING
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Serve
from portbook.model import JSON, JSONObject
from portbook.text.named_tuple import NamedTuple
from portbook.version import __version__

__all__ = ["OPERATIONS", "OPERATOR_OPENAPI", "OperatorOperation", "describe_routes"]

OPERATOR_OPENAPI: Final = "/operator/openapi.json"

_REFUSED: Final = {"400": "the request is wrong", "401": "the key is wrong", "404": "there is none"}


def describe_routes(served: App) -> Serve:
    """Return what describes the operator routes."""

    async def answer(_request: InboundRequest) -> JSON:
        return _document()

    return question(served.boundary, OPERATOR_OPENAPI, "operator.openapi", answer)


def _document() -> JSONObject:
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Portbook for operators", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"operatorKey": {"type": "http", "scheme": "bearer"}}},
        "security": [{"operatorKey": []}],
    }


def _operation(each: OperatorOperation) -> JSONObject:
    media = "text/event-stream" if each.is_stream else "application/json"
    answers: dict[str, Any] = {"200": {"description": "The answer.", "content": {media: {}}}}
    answers |= {status: {"description": why} for status, why in _REFUSED.items()}
    if each.body is not None:
        answers["409"] = {"description": "it cannot be decided so, or no longer"}
    operation: JSONObject = {
        "operationId": each.name,
        "summary": each.summary,
        "tags": ["operator"],
        "parameters": [*_parameters(each)],
        "responses": answers,
    }
    if each.body is None:
        return operation
    content: JSONObject = {"application/json": {"schema": each.body, "example": each.example}}
    return {**operation, "requestBody": {"required": True, "content": content}}


def _parameters(each: OperatorOperation) -> list[JSONObject]:
    text: JSONObject = {"type": "string"}
    inside: list[JSONObject] = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"\{(\w+)\}", each.path)
    ]
    asked: list[JSONObject] = [
        {"name": name, "in": "query", "schema": text, **({"example": example} if example else {})}
        for name, example in each.query.items()
    ]
    return inside + asked


# The table of them, which `/docs` shows, too.

_APPROVALS: Final = "/approvals"
_DECISION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"decision": {"enum": [*DECISIONS]}, "reason": {"type": "string", "maxLength": 1000}},
    "required": ["decision"],
    "additionalProperties": False,
}
# An example for each filter; without one, any text will do.
_FILTERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(FILTERS, ""),
    "tool": "files.*",
    "rule": "default",
    "status": "refused",
    "since": "2026-01-31T09:30:00Z",
}


class OperatorOperation(NamedTuple):
    """One method at one path."""

    method: str
    path: str
    name: str
    summary: str
    query: Mapping[str, str] = {}
    """The parameters of the query, each with an example, or an empty text."""
    body: JSONObject | None = None
    example: JSON = None
    """A body that could be sent."""
    is_stream: bool = False


OPERATIONS: Final[tuple[OperatorOperation, ...]] = (
    OperatorOperation(
        "get", WAITING, "listWaiting", "Calls that wait for approval, the oldest first.", {"id": ""}
    ),
    OperatorOperation(
        "get", _APPROVALS, "listApprovals", "The newest approvals.", {"state": State.PENDING.value}
    ),
    OperatorOperation("get", f"{_APPROVALS}/{{id}}", "showApproval", "One approval."),
    OperatorOperation(
        "post",
        f"{_APPROVALS}/{{id}}",
        "decideApproval",
        "Approve or deny a call.",
        body=_DECISION,
        example={"decision": "approve", "reason": "as agreed"},
    ),
    OperatorOperation(
        "get", CALLS, "listCalls", "Recorded calls, the newest first.",
        {**_FILTERS, "limit": "100", "before": ""},
    ),
    OperatorOperation("get", f"{CALLS}/{{id}}", "showCall", "Every record of one call."),
    OperatorOperation(
        "get", FIGURES, "countCalls", "Calls, refusals, failures and latencies over time.",
        {**_FILTERS, "buckets": "60", "fit": "1"},
    ),
    OperatorOperation("get", EVENTS, "followCalls", "Calls and waits as they come.", is_stream=True),
    OperatorOperation("get", PROOF, "proveLog", "Whether the log is whole."),
    OperatorOperation("get", UPSTREAMS, "listUpstreams", "How the MCP servers are doing."),
    OperatorOperation(
        "post",
        f"{UPSTREAMS}/{{name}}",
        "restartUpstream",
        "Restart an MCP server.",
        body=RESTART,
        example={"action": "restart"},
    ),
    OperatorOperation(
        "get", PINS, "listPins", "Withheld definitions beside the approved ones.", {"server": ""}
    ),
    OperatorOperation(
        "post",
        f"{PINS}/{{name}}",
        "decideOnPins",
        "Approve definitions of an MCP server as they were shown, or keep them withheld.",
        body=REVIEW,
        example={
            "decision": "approve",
            "definitions": [{"kind": "tool", "name": "send", "digest": "as shown"}],
            "force": False,
        },
    ),
    OperatorOperation("get", POLICY, "showPolicy", "The rules and limits in force, with their place."),
    OperatorOperation(
        "post",
        EXPLAIN,
        "explainCall",
        "How policy decides a call, without running it.",
        body=QUESTION,
        example={"tool": "docs.search", "args": {"query": "policy"}, "caller": "anonymous"},
    ),
    OperatorOperation(
        "post",
        REPLAY,
        "replayCalls",
        "What a changed policy would have decided on recorded calls.",
        body=TRIAL,
        example={"policy": '[policy]\ndefault = "deny"\n'},
    ),
)  # fmt: skip
