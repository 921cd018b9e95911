"""The members of a JSON body that a tool's input schema describes."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.http_table import described_members

LOOP = {"properties": {"c": {}}, "anyOf": [{"$ref": "#/$defs/Loop"}, True]}


@pytest.mark.parametrize(
    ("schema", "whole", "names"),
    [
        ({}, None, ""),
        ({"properties": {"a": {"properties": {"b": {}}}}}, None, "a"),
        ({"properties": {"a": {"properties": {"b": {}}}}}, "a", "b"),
        ({"properties": {"a": True}}, "a", ""),
        ({"properties": {"a": {}}}, "missing", ""),
        ({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}, None, "ab"),
        ({"properties": {"x": {"$ref": "#/$defs/Loop"}}, "$defs": {"Loop": LOOP}}, "x", "c"),
        ({"$ref": "#/$defs/Missing"}, None, ""),
        ({"$ref": "https://example.com/schema"}, None, ""),
        ({"properties": 1, "allOf": 2, "$defs": 3, "$ref": 4}, None, ""),
    ],
)
def test_described_are_the_properties_of_all_combined_schemas(
    schema: Any, whole: str | None, names: str
) -> None:
    assert described_members(schema, whole) == set(names)
