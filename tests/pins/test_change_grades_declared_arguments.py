"""Input schemas by the arguments they declare."""

from __future__ import annotations

import pytest

from portbook.model import JSON, JSONObject
from portbook.pins.change_grades import by_declared_arguments, declared_properties

ANY = "undeclared argument"
TEXT: JSON = {"type": "string"}


def test_undeclared_arguments_become_one() -> None:
    assert by_declared_arguments({"type": "object", "properties": {"a": TEXT}}) == {
        "type": "object",
        "properties": {"a": TEXT, ANY: True},
        "additionalProperties": False,
    }


def test_a_closed_object_has_none() -> None:
    closed: JSONObject = {"properties": {"a": TEXT}, "additionalProperties": False}
    assert by_declared_arguments(closed) == closed


def test_an_argument_that_is_only_required_is_declared_as_any_other() -> None:
    assert by_declared_arguments({"required": ["b"], "additionalProperties": TEXT}) == {
        "required": ["b"],
        "properties": {"b": TEXT, ANY: TEXT},
        "additionalProperties": False,
    }


def test_objects_at_any_depth_are_reduced_and_values_are_not() -> None:
    inner: JSON = {"type": "object"}
    reduced: JSON = {"type": "object", "properties": {ANY: True}, "additionalProperties": False}
    schema: JSONObject = {
        "items": inner,
        "prefixItems": [inner],
        "anyOf": [inner, {"type": "null"}],
        "$defs": {"a": inner},
        "default": inner,
        "enum": [inner],
    }
    assert by_declared_arguments(schema) == {
        "items": reduced,
        "prefixItems": [reduced],
        "anyOf": [reduced, {"type": "null"}],
        "$defs": {"a": reduced},
        "default": inner,
        "enum": [inner],
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": {"a": TEXT}}, {"properties": {"b": TEXT}}]},
        {"properties": {"a": TEXT}, "anyOf": [{"required": ["a"]}]},
        {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"properties": {"a": {"not": {}}}},
        {"properties": {ANY: TEXT}},
        {"properties": {"a": {"$ref": "#/additionalProperties"}}, "additionalProperties": TEXT},
    ],
    ids=str,
)
def test_rules_that_work_together_are_not_reduced(schema: JSONObject) -> None:
    assert by_declared_arguments(schema) is None


def test_the_places_of_declared_properties_are_found_at_any_depth() -> None:
    schema: JSONObject = {
        "properties": {"a": {"properties": {"b": TEXT}}},
        "allOf": [{"properties": {"c": TEXT}}],
        "default": {"properties": {"d": 1}},
    }
    assert declared_properties(schema) == {
        ("properties", "a"),
        ("properties", "a", "properties", "b"),
        ("allOf", 0, "properties", "c"),
    }
