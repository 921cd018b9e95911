"""`GET /operator/openapi.json`: the routes that operators use, as OpenAPI 3.1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from portbook.app.running_app import App
from portbook.doors.http.operator.operator_route import question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Serve
from portbook.model import JSON, JSONObject
from portbook.version import __version__

if TYPE_CHECKING:
    from portbook.doors.http.operator.operation_table import OperatorOperation

__all__ = ["OPERATOR_OPENAPI", "describe_routes"]

OPERATOR_OPENAPI: Final = "/operator/openapi.json"

_REFUSED: Final = {"400": "the request is wrong", "401": "the key is wrong", "404": "there is none"}


def describe_routes(served: App) -> Serve:
    """Return what describes the operator routes."""

    async def answer(_request: InboundRequest) -> JSON:
        return _document()

    return question(served.boundary, OPERATOR_OPENAPI, "operator.openapi", answer)


def _document() -> JSONObject:
    from portbook.doors.http.operator.operation_table import OPERATIONS  # late: only where somebody asks

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
