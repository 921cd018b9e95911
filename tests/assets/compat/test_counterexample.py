"""Changes that break have an instance to show, found at a cost that has a limit."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.compat.counterexample import around, scalars
from portbook.assets.compat.verdict import Compatibility, compare
from portbook.schema.engine import validator_for
from support.compared_schemas import CLOSED, NAME, PERSON, TREE, case, verdict


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("closed", PERSON, CLOSED),
        case("a property less", CLOSED, {**CLOSED, "properties": {"name": NAME}}),
        case("required", PERSON, {**PERSON, "required": ["name"]}),
        case(
            "a new requirement",
            CLOSED,
            {**CLOSED, "properties": {**CLOSED["properties"], "x": {}}, "required": ["x"]},
        ),
        case("a narrower type", {"type": ["string", "null"]}, NAME),
        case("whole numbers only", {"type": "number"}, {"type": "integer"}),
        case("one less of a list", {"enum": ["a", "b"]}, {"enum": ["a"]}),
        case("narrower limits", {"maximum": 10}, {"maximum": 9}),
        case("exclusive", {"maximum": 10}, {"exclusiveMaximum": 10}),
        case("shorter", {"type": "string", "maxLength": 300}, {"type": "string", "maxLength": 299}),
        case("longer", NAME, {"type": "string", "minLength": 1}),
        case("fewer items", {"maxItems": 3}, {"maxItems": 2}),
        case("more items", {"type": "array"}, {"type": "array", "minItems": 1}),
        case("no item twice", {"type": "array"}, {"type": "array", "uniqueItems": True}),
        case("fewer properties", {"type": "object"}, {"type": "object", "maxProperties": 2}),
        case("a pattern", {"pattern": "^[a-z]+$"}, {"pattern": "^[a-z]{2,}$"}),
        case("a format", NAME, {"type": "string", "format": "date-time"}),
        case(
            "deep inside",
            {"properties": {"a": {"items": PERSON}}},
            {"properties": {"a": {"items": {**PERSON, "required": ["age"]}}}},
        ),
        case(
            "behind a required pattern",
            {"properties": {"id": {"type": "string", "pattern": "^A-[0-9]{4}$"}}, "required": ["id"]},
            {
                "properties": {"id": {"type": "string", "pattern": "^A-[0-9]{4}$"}, "n": {"type": "integer"}},
                "required": ["id"],
            },
        ),
        case("a form less", {"anyOf": [NAME, {"type": "null"}]}, {"anyOf": [NAME]}),
        case("exactly one", {"anyOf": [NAME, {"minLength": 1}]}, {"oneOf": [NAME, {"minLength": 1}]}),
        case("a tree's nodes", TREE, {**TREE, "required": ["name"]}),
        case("nothing at all", {}, {"not": {}}),
        case(
            "a required date",
            {"properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]},
            {"properties": {"d": {"type": "string", "format": "date-time"}}, "required": ["d"]},
        ),
        case(
            "a pattern's properties", {"patternProperties": {"^x-": {}}}, {"patternProperties": {"^x-": NAME}}
        ),
        case(
            "by another version of a definition",
            {"$ref": "#/$defs/a", "$defs": {"a": PERSON}},
            {"$ref": "#/$defs/a", "$defs": {"a": CLOSED}},
        ),
        case(
            "one of two variants",
            {
                "oneOf": [
                    {"properties": {"k": {"const": "a"}}, "required": ["k"]},
                    {"properties": {"k": {"const": "b"}, "n": NAME}, "required": ["k", "n"]},
                ]
            },
            {"properties": {"k": {"const": "a"}}, "required": ["k"]},
        ),
    ],
)
def test_a_change_that_breaks_has_an_instance_to_show(old: Any, new: Any) -> None:
    assert verdict(old, new) == "breaks"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        case(
            "properties",
            {"type": "object", "maxProperties": 2 * 10**9},
            {"type": "object", "maxProperties": 2 * 10**9 - 1},
            "unknown",
        ),
        case(
            "items of items of items",
            {
                "type": "array",
                "minItems": 1000,
                "items": {"type": "array", "minItems": 1000, "items": {"type": "array", "minItems": 1000}},
            },
            {"type": "array", "maxItems": 1},
            "unknown",
        ),
        case("characters", {"type": "string"}, {"type": "string", "maxLength": 2 * 10**9}, "unknown"),
        case("some characters", {"type": "string"}, {"type": "string", "maxLength": 20_000}, "breaks"),
        case("many digits", {"maximum": 10**400}, {"maximum": 10**399}, "breaks"),
        case("all digits", {"maximum": 10**4299}, {"maximum": 10**4298}, "breaks"),
        case("the last float", {"maximum": 1e308}, {"maximum": 1e308, "not": {"const": 77.25}}, "unknown"),
    ],
)
def test_a_limit_that_is_too_large_to_be_tried_costs_nothing(old: Any, new: Any, expected: str) -> None:
    assert verdict(old, new) == expected


def test_a_schema_without_an_address_is_searched_like_any_other() -> None:
    old: Any = {"items": {"enum": ["a", "b"]}}
    new: Any = {"items": {"enum": ["a"]}}
    found = compare((old, validator_for(old)), (new, validator_for(new)))
    assert (found.verdict, found.breaks[0].instance) == (Compatibility.BREAKS, ["b"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("a name that another needs", {"type": "object"}, {"dependentRequired": {"a": ["b"]}}),
        case(
            "the end of a range",
            {"type": "string", "pattern": "^[a-z]+$"},
            {"type": "string", "pattern": "^[a-f]+$"},
        ),
    ],
)
def test_breaks_that_are_easily_overlooked_are_found(old: Any, new: Any) -> None:
    assert verdict(old, new) == "breaks"


# Values that keywords suggest: what they list, and what is next to their limits.


def test_the_values_next_to_limits_are_suggested() -> None:
    suggested = list(scalars([{"minimum": 5}, {"maxLength": 7}, {"enum": ["x"]}, {"format": "date"}]))
    assert suggested[0] == "x", "listed values come first"
    for value in (4, 5, 6, "a" * 6, "a" * 7, "a" * 8, "2026-01-02"):
        assert value in suggested


def test_only_limits_that_are_numbers_have_neighbours() -> None:
    assert around([{"minItems": 3}, {"maxItems": "x"}, {}], "minItems", "maxItems") == {2, 3, 4}
