"""Every member of a document, replaced by what must not be there: no more than operations is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from portbook.apis.openapi.document_files import BadOpenAPI, Documents
from portbook.apis.openapi.operations_and_names import read_openapi
from portbook.apis.openapi.security_schemes_and_credentials import read_schemes
from support.openapi_samples import STRING, document, parameter

GARBAGE: list[Any] = [
    None,
    [],
    {},
    5,
    -1.5,
    "x",
    "",
    True,
    [None],
    [[]],
    {"": {}},
    {"$ref": 5},
    {"$ref": "#"},
]

FORM: dict[str, Any] = {
    "schema": {"type": "object", "properties": {"f": {"type": "string", "format": "binary"}, "l": STRING}},
    "encoding": {"f": {"contentType": "image/png"}, "l": {"style": "form", "explode": True}},
}
OPENAPI: dict[str, Any] = {
    **document(
        version="3.1.0",
        path="/it/{id}",
        method="post",
        tags=["t"],
        security=[{"key": []}],
        servers=[{"url": "https://{v}.example", "variables": {"v": {"default": "a", "enum": ["a"]}}}],
        parameters=[
            parameter("id", "path", style="label"),
            parameter("q", "query", required=True, schema={"type": "string", "enum": ["x"]}),
            parameter("X-H", "header", content={"application/json": {"schema": STRING}}),
        ],
        requestBody={"required": True, "content": {"multipart/form-data": FORM}},
        responses={"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}}}},
        components={
            "schemas": {
                "S": {
                    "type": ["object", "null"],
                    "required": ["a"],
                    "properties": {"a": {**STRING, "pattern": "^a", "readOnly": True}},
                    "allOf": [{"additionalProperties": False, "minProperties": 1}],
                    "discriminator": {"propertyName": "a", "mapping": {"a": "#/components/schemas/S"}},
                }
            },
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        },
    )
}
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "host": "shop.example",
    "basePath": "/v1",
    "schemes": ["https"],
    "consumes": ["multipart/form-data"],
    "parameters": {"Top": {"name": "top", "in": "query", "type": "array", "collectionFormat": "csv"}},
    "definitions": {"S": {"type": "object", "properties": {"a": STRING}}},
    "securityDefinitions": {"o": {"type": "oauth2", "flow": "implicit", "scopes": {"a": "b"}}},
    "paths": {
        "/it": {
            "parameters": [{"$ref": "#/parameters/Top"}],
            "post": {
                "parameters": [
                    {"name": "f", "in": "formData", "type": "file", "required": True},
                    {"name": "l", "in": "formData", "type": "array", "collectionFormat": "multi"},
                ],
                "produces": ["application/json"],
                "responses": {"200": {"description": "", "schema": {"$ref": "#/definitions/S"}}},
            },
        }
    },
}


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to each member of a document."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        keys = list(range(len(cast("list[Any]", value))))
    for key in keys:
        yield (*at, key)
        yield from places(value[key], (*at, key))


def replaced(value: Any, place: tuple[str | int, ...], garbage: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = garbage
    return changed


@pytest.mark.parametrize("given", [OPENAPI, SWAGGER], ids=["openapi", "swagger"])
@pytest.mark.parametrize("garbage", GARBAGE, ids=json.dumps)
def test_nothing_but_an_operation_is_lost(tmp_path: Path, given: Any, garbage: Any) -> None:
    file = tmp_path / "api.json"
    for place in places(given):
        file.write_text(json.dumps(replaced(given, place, garbage)))
        documents = Documents(file)
        try:
            read_openapi(documents)
        except BadOpenAPI:
            # Only a document that does not say what it is, is refused as a whole.
            assert place in (("openapi",), ("swagger",))
            continue
        read_schemes(documents, documents.root())
