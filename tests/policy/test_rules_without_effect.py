"""Conditions that no value can meet, and those that only look so."""

from __future__ import annotations

import pytest

from portbook.model import JSONObject
from portbook.policy.rules_without_effect import is_contradictory


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"minimum": 5, "maximum": 1},
        {"minimum": 5, "exclusiveMaximum": 5},
        {"exclusiveMinimum": 5, "maximum": 5},
        {"type": "integer", "allOf": [{"minimum": 5}, {"allOf": [{"maximum": 4.5}]}]},
        {"minLength": 2, "maxLength": 1},
        {"minItems": 2, "maxItems": 1},
        {"minProperties": 2, "maxProperties": 1},
        {"not": {}},
        {"not": True},
        {"allOf": [False]},
        {"const": "a", "minLength": 2},
        {"const": "a", "enum": ["b"]},
        {"allOf": [{"const": 1}, {"const": 2}]},
        {"enum": ["a", "b"], "type": "integer"},
        {"enum": ["a"], "pattern": "^b"},
    ],
)
def test_no_value_meets_them(schema: JSONObject | bool) -> None:
    assert is_contradictory(schema)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"minimum": 5, "maximum": 5},
        {"minimum": 5},
        {"type": ["string", "integer"], "minimum": 5, "maximum": 1},
        {"minimum": 5, "maximum": 1, "minLength": 1},
        {"$ref": "#/$defs/a", "minimum": 5, "maximum": 1, "$defs": {"a": {}}},
        {"anyOf": [False, True]},
        {"enum": ["a", 5], "type": "integer"},
        {"const": 5, "minimum": 5},
    ],
)
def test_a_value_may_meet_them(schema: JSONObject | bool) -> None:
    assert not is_contradictory(schema)
