"""`GET /openapi.json`: the REST routes that callers use as OpenAPI 3.1, with an operation for each tool."""

from __future__ import annotations

from typing import Any, Final, cast

import orjson

from portbook.boundary import Boundary
from portbook.doors.http.request import InboundRequest, arrival_of
from portbook.doors.http.response import Reply, reply_to
from portbook.doors.http.router import Serve
from portbook.errors import REASONS
from portbook.model import JSON, JSONObject
from portbook.policy import Policy
from portbook.tools.catalog import Tool
from portbook.tools.packaged_files import shipped_folder
from portbook.version import __version__

__all__ = ["OPENAPI", "openapi"]

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
