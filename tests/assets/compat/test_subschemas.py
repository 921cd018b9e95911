"""Which parts of a schema speak of a place, and which references are only words."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.compat.subschemas import (
    TYPES,
    Subschemas,
    bounds_of,
    forms,
    is_exact,
    listed_values,
    types_at,
    types_of,
)
from portbook.errors import Finding
from support.compared_schemas import case, made, verdict


def test_a_word_in_a_description_is_no_dynamic_reference() -> None:
    assert verdict({"description": 'no "$dynamicRef"', "type": "integer"}, {"type": "number"}) == "compatible"
    dynamic = {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}
    assert verdict(dynamic, dynamic) == "unknown"


def test_the_place_of_a_finding_is_one_that_the_schema_has() -> None:
    schema = Subschemas(*made({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "null"}}}))
    for given, place in (("/$defs/n/type", "/$defs/n/type"), ("/properties/a/allOf/0/not", "/properties/a")):
        assert schema.place_of(Finding("", "", "type", given, "file:///s.json")) == place


# The same words mean the same only where what they refer to is the same.


META = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        case("at the root", {}, {"$ref": META}, "breaks"),
        case("below", {"type": "object"}, {"properties": {"a": {"$ref": META}}}, "breaks"),
        case("where nothing breaks", {"const": {}}, {"allOf": [{"$ref": META}]}, "compatible"),
        case("in both", {"$ref": META, "minimum": 1}, {"$ref": META}, "compatible"),
        case(
            "in both, another", {"$ref": META.removesuffix("schema") + "meta/core"}, {"$ref": META}, "unknown"
        ),
        case(
            "in the words of one with a target",
            {
                "$id": "https://a.example/x",
                "$ref": "schema",
                "$defs": {"s": {"$id": "schema", "not": {"const": 7.5}}},
            },
            {"$id": "https://json-schema.org/draft/2020-12/x", "$ref": "schema"},
            "breaks",
        ),
    ],
)
def test_a_reference_to_the_meta_schema_is_no_silence(old: Any, new: Any, expected: str) -> None:
    assert verdict(old, new) == expected


def test_a_value_that_is_referred_to_is_still_a_value() -> None:
    def forbids(title: int) -> Any:
        return {"not": {"const": {"title": title}}, "$defs": {"a": {"$ref": "#/not/const"}}}

    assert verdict(forbids(1), forbids(2)) != "compatible"
    assert verdict(forbids(1), forbids(1)) == "compatible"


# What a subschema states of its values, in the terms of JSON Schema.


@pytest.mark.parametrize(
    ("part", "types"),
    [
        ({"type": "number"}, {"number", "integer"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"enum": [1.0, "a", None]}, {"integer", "string", "null"}),
        ({"const": True, "type": "string"}, set[str]()),
        ({"const": [1]}, {"array"}),
    ],
)
def test_types_are_those_of_the_type_and_of_listed_values(part: Any, types: set[str]) -> None:
    assert types_of(part) == types


def test_numbers_are_equal_however_they_are_written() -> None:
    assert listed_values({"enum": [1, 2.0]}, "enum") == listed_values({"enum": [2, 1.0]}, "enum")
    assert forms([1, {"a": 2.0}]) == ([1, {"a": 2}], [1.0, {"a": 2.0}])
    assert is_exact([2**53 - 1])
    assert not is_exact({"a": 2**53})


def test_a_larger_bound_is_stricter_in_either_direction() -> None:
    keywords = ("maximum", "exclusiveMaximum")
    assert bounds_of({"maximum": 5, "exclusiveMaximum": 4}, keywords, -1) == [(-5, False), (-4, True)]


def test_the_types_of_a_place_are_those_that_all_its_parts_allow() -> None:
    schemas = Subschemas(*made({"type": ["integer", "string"], "allOf": [{"enum": [1, None]}, True]}))
    assert types_at(schemas, schemas.root) == {"integer", "string"}
    assert types_at(schemas, schemas.spread(schemas.root)) == {"integer"}
    assert types_at(schemas, ()) == TYPES
