"""`GET /openapi.json` and `/operator/openapi.json`: routes of callers and operators, as OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson

from portbook.access.approval_state_and_binding import DECISIONS, State
from portbook.app.running_app import App
from portbook.audit.call_index_filters_and_figures import FILTERS
from portbook.boundary import Boundary
from portbook.doors.http.approval_routes import WAITING
from portbook.doors.http.operator.call_event_and_proof_routes import CALLS, EVENTS, FIGURES, PROOF
from portbook.doors.http.operator.operator_route import question
from portbook.doors.http.operator.pin_policy_and_upstream_routes import (
    EXPLAIN,
    PINS,
    POLICY,
    QUESTION,
    REPLAY,
    RESTART,
    REVIEW,
    TRIAL,
    UPSTREAMS,
)
from portbook.doors.http.request import InboundRequest, arrival_of
from portbook.doors.http.response import Reply, reply_to
from portbook.doors.http.router import Serve
from portbook.errors import REASONS
from portbook.model import JSON, JSONObject
from portbook.policy import Policy
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Tool
from portbook.tools.contract_registry import shipped_folder
from portbook.version import __version__

__all__ = ["OPENAPI", "OPERATIONS", "OPERATOR_OPENAPI", "OperatorOperation", "describe_routes", "openapi"]

OPENAPI: Final = "/openapi.json"

_COMPONENTS: Final = "#/components/schemas/"
# Keywords whose values are data: a `$ref` in them is not a reference.
_NO_SCHEMAS: Final = frozenset({"const", "enum", "default", "examples"})


def openapi(boundary: Boundary) -> Serve:
    """Return what describes the REST routes."""

    async def serve(request: InboundRequest) -> Reply:
        return reply_to(await boundary.tell("openapi", arrival_of(request.head, OPENAPI), _document))

    return serve


def _document(tools: list[Tool], policy: Policy) -> JSONObject:
    request = orjson.loads((shipped_folder("schemas") / "execute.schema.json").read_bytes())
    own = {name: schema for name, schema in request["properties"].items() if name != "tool_id"}
    paths: JSONObject = {
        f"/tools/{tool.spec.name}": {"get": _description(tool), "post": _operation(tool, own)}
        for tool in tools
    }
    paths["/execute"] = {"post": _execute(request)}
    paths["/tools"] = {"get": {**_get("listTools", "The tools that you may call."), "parameters": [_BRIEF]}}
    paths["/health"] = {"get": _get("health", "Whether the boundary can do its work.", failing=True)}
    paths["/livez"] = {"get": _get("livez", "Whether the process answers.")}
    paths["/readyz"] = {"get": _get("readyz", "Whether it is ready for calls.", failing=True)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Portbook", "version": __version__},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Tool": _json({"type": "object"}, "One tool, with a schema for forms."),
                "Failure": _json({"$ref": "#/components/schemas/Failure"}, "There is no such tool, or key."),
            },
            "schemas": {
                "Error": _ERROR,
                "Metadata": _METADATA,
                "Failure": _answer(None),
                **_contracts(tools),
            },
        },
        "security": [{}, {"key": []}],
    }


def _contracts(tools: list[Tool]) -> JSONObject:
    contracts: JSONObject = {}
    for tool in tools:
        for side, schema in (("args", tool.spec.input_schema), ("result", tool.spec.listed_output)):
            name = f"{tool.spec.name}.{side}"
            contracts[name] = _component(schema, name)
    return contracts


def _operation(tool: Tool, own: dict[str, Any]) -> JSONObject:
    spec = tool.spec
    body: JSONObject = {
        "type": "object",
        "required": ["session_id", "args"],
        "properties": {**own, "args": {"$ref": f"{_COMPONENTS}{spec.name}.args"}},
        "additionalProperties": False,
    }
    result: JSONObject = {"$ref": f"{_COMPONENTS}{spec.name}.result"}
    return {
        "operationId": spec.name,
        "summary": spec.description.partition("\n")[0],
        "description": spec.description,
        "tags": [spec.effect.value],
        "x-portbook-effect": spec.effect.value,
        "requestBody": _json(body, is_body=True),
        "responses": {"200": _json(_answer(result)), **_failures()},
    }


def _execute(request: JSONObject) -> JSONObject:
    body = {name: value for name, value in request.items() if name not in ("$schema", "$id")}
    return {
        "operationId": "execute",
        "summary": "Run a tool.",
        "requestBody": _json(body, is_body=True),
        "responses": {"200": _json(_answer({})), **_failures()},
    }


def _get(name: str, summary: str, *, failing: bool = False) -> JSONObject:
    responses: JSONObject = {"200": _json({"type": "object"})}
    if failing:
        responses["503"] = _json({"type": "object"})
    else:
        responses["401"] = _json({"$ref": "#/components/schemas/Failure"})
    return {"operationId": name, "summary": summary, "responses": responses}


def _description(tool: Tool) -> JSONObject:
    responses: JSONObject = {
        "200": {"$ref": "#/components/responses/Tool"},
        "401": {"$ref": "#/components/responses/Failure"},
        "404": {"$ref": "#/components/responses/Failure"},
    }
    # A name that no tool can have.
    return {"operationId": f"describe:{tool.spec.name}", "summary": "What it is.", "responses": responses}


def _failures() -> JSONObject:
    failure: JSONObject = {"$ref": "#/components/schemas/Failure"}
    statuses = sorted({row.http for row in REASONS.values()})
    return {
        str(status): _json(
            failure, "; ".join(sorted({row.rest for row in REASONS.values() if row.http == status}))
        )
        for status in statuses
    }


def _answer(result: JSONObject | None) -> JSONObject:
    """Return the schema of an answer: of a success if `result` is a schema, else of a failure."""
    is_success = result is not None
    return {
        "type": "object",
        "required": ["status", "result", "error", "metadata"],
        "properties": {
            "status": {"const": "success" if is_success else "failure"},
            "result": result if is_success else {"type": "null"},
            "error": {"type": "null"} if is_success else {"$ref": "#/components/schemas/Error"},
            "metadata": {"$ref": "#/components/schemas/Metadata"},
        },
        "additionalProperties": False,
    }


_BRIEF: Final[JSONObject] = {
    "name": "brief",
    "in": "query",
    "description": "1 for tools without their schemas",
    "schema": {"type": "string"},
    "example": "1",
}

_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["code", "message", "details", "retryable", "policy_violation"],
    "properties": {
        "code": {"enum": sorted({row.rest for row in REASONS.values()})},
        "message": {"type": "string"},
        "details": {"type": "object"},
        "retryable": {"type": "boolean"},
        "policy_violation": {"type": "boolean"},
    },
    "additionalProperties": False,
}

_LINK: Final[JSONObject] = {
    "type": "object",
    "required": ["url", "rel"],
    "properties": {"url": {"type": "string"}, "rel": {"type": "string"}},
    "additionalProperties": False,
}

_METADATA: Final[JSONObject] = {
    "type": "object",
    "required": ["latency_ms", "status_code", "request_id", "trace_id", "redaction_applied"],
    "properties": {
        "latency_ms": {"type": "number"},
        "status_code": {"type": "integer"},
        "request_id": {"type": "string"},
        "trace_id": {"type": "string"},
        "redaction_applied": {"type": "boolean"},
        "approval_id": {"type": "string"},
        "links": {"type": "array", "items": _LINK},
    },
    "additionalProperties": False,
}


def _json(schema: JSONObject, description: str = "", *, is_body: bool = False) -> JSONObject:
    content: JSONObject = {"content": {"application/json": {"schema": schema}}}
    return (
        {**content, "required": True} if is_body else {**content, "description": description or "The answer."}
    )


def _component(schema: JSONObject | bool, name: str) -> JSONObject:
    """Return a tool's schema as a component, with its references rewritten to match."""
    if isinstance(schema, bool):  # written out: not every OpenAPI reader knows boolean schemas
        return {} if schema else {"not": {}}
    moved = cast("JSONObject", _moved(schema, f"{_COMPONENTS}{name}"))
    return {keyword: value for keyword, value in moved.items() if keyword not in ("$schema", "$id")}


def _moved(schema: JSON, root: str) -> JSON:
    if isinstance(schema, list):
        return [_moved(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: root + value[1:]
        if keyword == "$ref" and isinstance(value, str) and value.startswith("#")
        else value
        if keyword in _NO_SCHEMAS
        else _moved(value, root)
        for keyword, value in schema.items()
    }


# `GET /operator/openapi.json`: every route that operators use, described once, as OpenAPI 3.1.

OPERATOR_OPENAPI: Final = "/operator/openapi.json"

_REFUSED: Final = {"400": "the request is wrong", "401": "the key is wrong", "404": "there is none"}


def describe_routes(served: App) -> Serve:
    """Return what describes the operator routes."""

    async def answer(_request: InboundRequest) -> JSON:
        return _operator_document()

    return question(served.boundary, OPERATOR_OPENAPI, "operator.openapi", answer)


def _operator_document() -> JSONObject:
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method] = _operator_operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Portbook for operators", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"operatorKey": {"type": "http", "scheme": "bearer"}}},
        "security": [{"operatorKey": []}],
    }


def _operator_operation(each: OperatorOperation) -> JSONObject:
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
