"""What a subschema states of its values, in the terms of JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.compat.stated_values import (
    TYPES,
    bounds_of,
    forms,
    is_exact,
    listed_values,
    types_at,
    types_of,
)
from portbook.assets.compat.subschemas import Subschemas
from support.compared_schemas import made


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
