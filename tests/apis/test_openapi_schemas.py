"""Schemas of OpenAPI as JSON Schema: each whole in itself, and what 3.0 writes in its own way rewritten."""

from __future__ import annotations

from typing import Any

import pytest

from support.openapi_samples import STRING, accepts, document, only


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_a_schema_that_refers_to_itself_stays_finite(write: Any, version: str) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "value": STRING}}
    given = document(
        version,
        responses={
            "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
        },
        components={"schemas": {"Node": node}},
    )
    schema = only(write(given)).output_schema
    assert accepts(schema, {"next": {"next": {"value": "a"}}})
    assert not accepts(schema, {"next": {"next": {"value": 1}}})


def test_a_long_chain_of_references_is_no_trouble(write: Any) -> None:
    schemas: dict[str, Any] = {
        f"S{n}": {"type": "object", "properties": {"next": {"$ref": f"#/components/schemas/S{n + 1}"}}}
        for n in range(3000)
    }
    schemas["S3000"] = STRING
    given = document(
        responses={"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}},
        components={"schemas": schemas},
    )
    schema = only(write(given)).output_schema
    assert isinstance(schema, dict)
    assert len(schema["$defs"]) == 3001


def test_two_schemas_of_one_name_stay_apart(write: Any) -> None:
    refs = [{"$ref": "#/components/schemas/It"}, {"$ref": "other.json#/It"}]
    given = document(
        responses={
            "200": {"content": {"application/json": {"schema": {"type": "array", "prefixItems": refs}}}}
        },
        components={"schemas": {"It": STRING}},
    )
    schema = only(write(given, **{"other.json": {"It": {"type": "integer"}}})).output_schema
    assert accepts(schema, ["a", 1])
    assert not accepts(schema, [1, "a"])


def converted(write: Any, version: str, schema: Any) -> Any:
    given = document(version, responses={"200": {"content": {"application/json": {"schema": schema}}}})
    return only(write(given)).output_schema


OLD: list[tuple[str, Any, Any]] = [
    ("nullable", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ("not nullable", {"type": "string", "nullable": False}, STRING),
    (
        "a nullable enum",
        {"type": "string", "enum": ["a"], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    (
        "nullable without a type",
        {"allOf": [STRING], "nullable": True},
        {"anyOf": [{"allOf": [STRING]}, {"type": "null"}]},
    ),
    (
        "an exclusive minimum",
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        {"type": "integer", "exclusiveMinimum": 1},
    ),
    (
        "an inclusive maximum",
        {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
        {"type": "integer", "maximum": 9},
    ),
    ("nested", {"type": "array", "items": {"type": "string", "nullable": True}},
     {"type": "array", "items": {"type": ["string", "null"]}}),
    ("documentation", {"type": "string", "example": "a", "xml": {}, "x-a": 1, "externalDocs": {}}, STRING),
    ("a property called nullable", {"properties": {"nullable": {"type": "boolean", "nullable": True}}},
     {"properties": {"nullable": {"type": ["boolean", "null"]}}}),
    ("a property called example", {"properties": {"example": STRING}}, {"properties": {"example": STRING}}),
    ("data", {"enum": [{"nullable": True}], "default": {"example": 1}},
     {"enum": [{"nullable": True}], "default": {"example": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "schema", "expected"), OLD, ids=[row[0] for row in OLD])
def test_schemas_of_3_0_are_rewritten(write: Any, what: str, schema: Any, expected: Any) -> None:
    assert converted(write, "3.0.1", schema) == expected


def test_schemas_of_3_1_are_left_as_they_are(write: Any) -> None:
    schema = {"type": ["string", "null"], "exclusiveMinimum": 5, "nullable": True}
    assert converted(write, "3.1.0", schema) == {"type": ["string", "null"], "exclusiveMinimum": 5}


def test_what_stands_beside_a_reference_counts_from_3_1_on(write: Any) -> None:
    components = {"schemas": {"S": STRING}}
    schema = {"$ref": "#/components/schemas/S", "minLength": 3}
    for version, verdict in (("3.0.3", True), ("3.1.0", False)):
        given = document(
            version,
            responses={"200": {"content": {"application/json": {"schema": schema}}}},
            components=components,
        )
        assert accepts(only(write(given)).output_schema, "a") is verdict
