"""Read-only and write-only properties: where they are, and where they are required."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.schema.engine import validator_for
from support.openapi_samples import STRING, accepts, document, only

BASE = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string", "readOnly": True}, "pin": {"type": "string", "writeOnly": True}},
    "additionalProperties": False,
}


def imported(write: Any, schema: Any) -> tuple[Any, Any]:
    """Return the schemas of the argument `body` and of the result."""
    content = {"application/json": {"schema": schema}}
    given = document(
        method="put",
        requestBody={"content": content, "required": True},
        responses={"200": {"content": content}},
        components={"schemas": {"Base": BASE}},
    )
    operation = only(write(given))
    return operation.input_schema, operation.output_schema


def test_a_write_only_property_is_not_required_back_and_breaks_nothing(write: Any) -> None:
    arguments, result = imported(write, {**BASE, "required": ["id", "pin"]})
    assert accepts(arguments, {"pin": "1"})
    assert not accepts(arguments, {})
    assert accepts(result, {"id": "a"})
    assert accepts(result, {"id": "a", "pin": "1"})
    assert not accepts(result, {"pin": "1"})


def test_a_read_only_property_is_no_argument(write: Any) -> None:
    arguments, _ = imported(write, BASE)
    assert list(arguments["properties"]) == ["pin"]
    assert not arguments.get("required")
    assert not accepts(arguments, {"id": "a"})


def test_what_one_schema_of_all_describes_and_another_requires_is_left_out(write: Any) -> None:
    open_base = {key: value for key, value in BASE.items() if key not in ("required", "additionalProperties")}
    for schema in (
        {"allOf": [open_base, {"required": ["id", "pin", "name"], "properties": {"name": STRING}}]},
        {"allOf": [open_base], "required": ["id", "pin", "name"], "properties": {"name": STRING}},
        {"allOf": [{"allOf": [open_base]}, {"type": "object", "required": ["id", "pin", "name"]}]},
    ):
        arguments, result = imported(write, schema)
        assert accepts(arguments, {"body": {"name": "n", "pin": "1"}})
        assert not accepts(arguments, {"body": {"name": "n"}})
        assert accepts(result, {"name": "n", "id": "1"})
        assert not accepts(result, {"name": "n"})


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [ref("Open"), ref("Ext")]},
        {"allOf": [ref("Open"), {"allOf": [ref("Ext")]}]},
        {"allOf": [ref("Open"), {"oneOf": [ref("Ext")]}]},
        {"allOf": [ref("Open")], "anyOf": [ref("Ext")]},
        {"allOf": [ref("Chain"), ref("Ext")]},
        {"required": ["id", "name"], "oneOf": [ref("Open")]},
        {"required": ["id", "name"], "anyOf": [ref("Chain")]},
        {"allOf": [ref("Loop"), ref("Open")]},
    ],
)
def test_no_schema_around_or_beside_requires_a_read_only_property(
    write: Any, version: str, schema: Any
) -> None:
    described = {
        "Open": OPEN,
        "Chain": {"allOf": [ref("Open")]},
        "Ext": {"type": "object", "required": ["id", "name"], "properties": {"name": STRING}},
        "Loop": {"required": ["id", "name"], "properties": {"inner": ref("Loop")}},
    }
    content = {"application/json": {"schema": schema}}
    given = document(version, method="put", requestBody={"content": content})
    arguments = only(write({**given, "components": {"schemas": described}})).input_schema
    assert accepts(arguments, {"body": {"name": "n"}})
    assert not accepts(arguments, {"body": {}})
    assert not accepts(arguments, {"body": {"name": "n", "id": "a"}})


def test_references_that_fan_out_are_written_in_place_once(write: Any) -> None:
    described: dict[str, Any] = {
        f"S{level}": {"required": ["id"], "anyOf": [ref(f"S{level + 1}"), ref(f"S{level + 1}")]}
        for level in range(6)
    }
    described |= {"S6": {"type": "object", "required": ["id"]}, "Open": OPEN}
    content = {"application/json": {"schema": {"allOf": [ref("Open"), ref("S0")]}}}
    given = document(method="put", requestBody={"content": content})
    arguments = only(write({**given, "components": {"schemas": described}})).input_schema
    assert json.dumps(arguments["properties"]).count("anyOf") == 6
    assert accepts(arguments, {"body": {}})


def test_alternatives_are_not_beside_each_other(write: Any) -> None:
    other = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
    arguments, _ = imported(write, {"oneOf": [{**OPEN, "required": ["pin"]}, other]})
    assert accepts(arguments, {"body": {"id": 5}})
    assert not accepts(arguments, {"body": {}})


def test_a_required_property_of_a_reference_is_left_out(write: Any) -> None:
    schema = {"allOf": [{"$ref": "#/components/schemas/Base"}, {"type": "object", "properties": {"id": {}}}]}
    arguments, _ = imported(write, schema)
    assert accepts(arguments, {"body": {}})


def test_what_one_part_of_a_form_has_as_read_only_no_other_part_requires(write: Any) -> None:
    file = {"type": "string", "format": "binary"}
    parts = [
        {"type": "object", "properties": {"n": {"type": "string", "readOnly": True}}},
        {"type": "object", "properties": {"f": file}, "required": ["f", "n"]},
    ]
    content = {"multipart/form-data": {"schema": {"allOf": parts}}}
    arguments = only(write(document(method="post", requestBody={"content": content}))).input_schema
    assert accepts(arguments, {"f": "AA=="})
    assert not accepts(arguments, {})
    assert not accepts(arguments, {"f": "AA==", "n": "x"})


OPEN = {key: value for key, value in BASE.items() if key != "additionalProperties"}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (OPEN, {"pin": "1", "more": 2}, {"pin": "1", "id": "a"}),
        ({"type": "array", "items": OPEN}, {"body": [{"more": 2}]}, {"body": [{"id": "a"}]}),
        ({"allOf": [OPEN, {"required": ["id"]}]}, {"body": {"more": 2}}, {"body": {"id": "a"}}),
        (
            {**OPEN, "additionalProperties": STRING},
            {"body": {"more": "b"}},
            {"body": {"more": "b", "id": "a"}},
        ),
        (
            {**OPEN, "propertyNames": {"maxLength": 4}},
            {"body": {"more": 1}},
            {"body": {"id": "a"}},
        ),
        (
            {"oneOf": [OPEN, {"type": "object", "properties": {"id": {"type": "integer"}}}]},
            {"body": {"id": 5}},
            {"body": {"id": "a"}},
        ),
    ],
)
def test_a_read_only_property_is_refused_where_others_may_be_added(
    write: Any, schema: Any, good: Any, bad: Any
) -> None:
    arguments, result = imported(write, schema)
    assert accepts(arguments, good)
    assert not accepts(arguments, bad)
    assert "not" not in json.dumps(result)


def test_a_read_only_property_that_is_sent_is_named(write: Any) -> None:
    arguments, _ = imported(write, OPEN)
    (finding,) = validator_for(arguments).findings({"id": "a"})
    assert finding.message == 'property name "id" is not allowed'
