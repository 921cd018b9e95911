"""Schemas of OpenAPI as JSON Schema: each whole in itself, and what 3.0 writes in its own way rewritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.openapi.document_files import Documents
from portbook.apis.openapi.operations_and_names import read_openapi
from support.openapi_samples import STRING, accepts, document, only, parameter


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


VENDORS: list[tuple[str, Any, Any]] = [
    ("3.0's nullable in 3.1", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ("3.0's bounds in 3.1", {"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
    ("3.0's bounds that say nothing", {"exclusiveMaximum": True}, {}),
    ("a name required twice", {"required": ["a", "a"]}, {"required": ["a"]}),
    ("a property that requires itself",
     {"properties": {"a": {"type": "string", "required": True}, "b": {}}, "required": ["b"]},
     {"properties": {"a": STRING, "b": {}}, "required": ["b", "a"]}),
    ("a list of items", {"items": [STRING, {"type": "null"}]}, {"prefixItems": [STRING, {"type": "null"}]}),
    ("items that are no schema", {"type": "array", "items": "string"}, {"type": "array"}),
    ("one schema instead of a list", {"allOf": STRING}, {"allOf": [STRING]}),
    ("an empty list", {"oneOf": []}, {}),
    ("a word for a boolean", {"additionalProperties": "false"}, {"additionalProperties": False}),
    ("a member without a value", {"properties": {"a": None}}, {"properties": {"a": True}}),
    ("dependencies", {"dependencies": {"a": ["b"], "c": STRING}},
     {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": STRING}}),
    ("nullable alone", {"nullable": True, "description": "Any."}, {"description": "Any."}),
    ("an unknown keyword", {"type": "string", "collectionFormat": "csv", "$id": "a", "$anchor": "b"}, STRING),
    ("a pattern", {"pattern": "^a+$"}, {"pattern": "^a+$"}),
    ("a pattern in slashes", {"pattern": "/^a+$/"}, {"pattern": "^a+$"}),
    ("a pattern that looks ahead", {"pattern": "^(?!a)"}, {"description": "Pattern, not checked: ^(?!a)"}),
    ("no pattern at all", {"pattern": "[", "description": "A."},
     {"description": "A.\n\nPattern, not checked: ["}),
    ("a pattern that is no text", {"pattern": 5}, {}),
    ("a pattern of names",
     {"patternProperties": {"^(?=a)": STRING, "^b": STRING}, "additionalProperties": False},
     {"patternProperties": {"^b": STRING}}),
]  # fmt: skip


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize(("what", "schema", "expected"), VENDORS, ids=[row[0] for row in VENDORS])
def test_what_vendors_write_is_translated(
    write: Any, version: str, what: str, schema: Any, expected: Any
) -> None:
    assert converted(write, version, schema) == expected


def test_patterns_that_are_not_checked_are_a_warning(tmp_path: Path) -> None:
    schema = {"type": "string", "pattern": "(?<=a)b"}
    given = document(parameters=[parameter("x", "query", schema=schema)])
    (tmp_path / "api.json").write_text(json.dumps(given))
    warnings: list[str] = []
    operation = only(read_openapi(Documents(tmp_path / "api.json"), warn=warnings.append))
    assert accepts(operation.input_schema, {"x": "anything"})
    assert len(warnings) == 1
    assert warnings[0].startswith("1 pattern is not checked in api.json")
    assert warnings[0].endswith("api.json#/paths/~1it/get/parameters/0/schema/pattern")


@pytest.mark.parametrize(
    ("anchor", "reference"),
    [
        ({"$recursiveAnchor": True}, {"$recursiveRef": "#"}),
        ({"$dynamicAnchor": "node"}, {"$dynamicRef": "#node"}),
        ({}, {"$recursiveRef": "#"}),
    ],
)
def test_a_reference_to_the_nearest_schema_around_it_is_followed(
    write: Any, anchor: dict[str, Any], reference: dict[str, Any]
) -> None:
    node = {
        "type": "object",
        **anchor,
        "properties": {"key": STRING, "all": {"type": "array", "items": {"oneOf": [STRING, reference]}}},
    }
    given = document(
        "3.1.0",
        responses={
            "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
        },
        components={"schemas": {"Node": node}},
    )
    schema = only(write(given)).output_schema
    assert accepts(schema, {"all": ["a", {"key": "b", "all": [{"key": "c"}]}]})
    assert not accepts(schema, {"all": [{"all": [{"key": 5}]}]})


def test_definitions_are_written_once_and_shared(write: Any) -> None:
    ref = {"$ref": "#/components/schemas/Big"}
    response = {"responses": {"200": {"content": {"application/json": {"schema": ref}}}}}
    given = document(components={"schemas": {"Big": {"type": "object"}}})
    given["paths"] = {f"/{n}": {"get": {"operationId": f"o{n}", **response}} for n in range(2)}
    first, second = (only([found]).output_schema for found in write(given))
    assert first["$defs"]["Big"] is second["$defs"]["Big"]


def test_operations_that_need_the_same_definitions_have_one_object_of_them(write: Any) -> None:
    node = {"properties": {"next": {"$ref": "#/components/schemas/B"}}}
    schemas = {"A": node, "B": {"items": {"$ref": "#/components/schemas/A"}}, "C": node}
    given = document(components={"schemas": schemas})
    for name in schemas:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
        given["paths"][f"/{name}"] = {"get": {"responses": {"200": {"content": content}}}}
    definitions = [only([found]).output_schema["$defs"] for found in write(given)[1:]]
    assert [list(each) for each in definitions] == [["A", "B"], ["A", "B"], ["A", "B", "C"]]
    assert definitions[0] is definitions[1]


def test_a_reference_may_be_null_where_it_says_so(write: Any) -> None:
    schema = {"$ref": "#/components/schemas/S", "nullable": True, "description": "Maybe."}
    given = document(
        responses={"200": {"content": {"application/json": {"schema": schema}}}},
        components={"schemas": {"S": STRING}},
    )
    found = only(write(given)).output_schema
    assert [accepts(found, value) for value in ("a", None, 5)] == [True, True, False]


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
