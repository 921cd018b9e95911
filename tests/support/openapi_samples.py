"""Documents of OpenAPI with one operation, and what is read of them."""

from __future__ import annotations

from typing import Any

from portbook.apis.arguments_put_into_request import Composed, Composer
from portbook.apis.left_out_operations import LeftOutOperation
from portbook.apis.openapi.operations_and_names import ImportedOperation
from portbook.schema.engine import validator_for
from portbook.tools.http_operation import HttpOperation

STRING: dict[str, Any] = {"type": "string"}


def document(
    version: str = "3.0.3", path: str = "/it", method: str = "get", **operation: Any
) -> dict[str, Any]:
    components = operation.pop("components", {})
    operation = {"operationId": "it", "responses": {}, **operation}
    return {"openapi": version, "paths": {path: {method: operation}}, "components": components}


def only(found: list[ImportedOperation | LeftOutOperation]) -> ImportedOperation:
    assert len(found) == 1
    assert isinstance(found[0], ImportedOperation), found[0]
    return found[0]


def left_out(found: list[ImportedOperation | LeftOutOperation]) -> LeftOutOperation:
    assert len(found) == 1
    assert isinstance(found[0], LeftOutOperation), found[0]
    return found[0]


def accepts(schema: Any, value: Any) -> bool:
    return validator_for(schema).is_valid(value)


def parameter(name: str, place: str, **members: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "schema": STRING,
        **({"required": True} if place == "path" else {}),
        **members,
    }


def request_of(operation: ImportedOperation, arguments: dict[str, Any]) -> Composed:
    """Return the request that an imported operation makes of `arguments`."""
    made = HttpOperation(
        "g",
        "https://a.example",
        operation.method,
        operation.path,
        parameters=operation.parameters,
        headers=operation.headers,
        body=operation.body,
        has_body=operation.has_body,
        parts=operation.parts,
        request=operation.request,
    )
    return Composer(made).compose(arguments)
