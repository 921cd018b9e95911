"""A schema for a form: references are replaced, and data that looks like one is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.schema.inlined_references import inlined_references

POINT: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "number"}}}
NAMES = ("$ref", "$defs", "definitions", "default", "enum")
OLD = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"$ref": "#/$defs/p", "$defs": {"p": POINT}}, POINT, id="the whole"),
        pytest.param(
            {"properties": {"a": {"$ref": "#/$defs/p", "title": "A"}}, "$defs": {"p": POINT}},
            {"properties": {"a": {**POINT, "title": "A"}}},
            id="with a title beside it",
        ),
        pytest.param(
            {"items": {"$ref": "#/$defs/q"}, "$defs": {"q": {"anyOf": [{"$ref": "#/$defs/p"}]}, "p": POINT}},
            {"items": {"anyOf": [POINT]}},
            id="through another one",
        ),
        pytest.param(
            {"properties": {"a": {"$ref": "#here"}}, "$defs": {"p": {**POINT, "$anchor": "here"}}},
            {"properties": {"a": {**POINT, "$anchor": "here"}}},
            id="by an anchor",
        ),
        pytest.param(
            {"$schema": OLD, "properties": {"a": {"$ref": "#/definitions/p"}}, "definitions": {"p": POINT}},
            {"$schema": OLD, "properties": {"a": POINT}},
            id="draft-07",
        ),
        pytest.param({"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": True}},
                     {"properties": {"a": True}}, id="true"),
        pytest.param({"const": {"$ref": "#/$defs/p"}}, {"const": {"$ref": "#/$defs/p"}}, id="data"),
        pytest.param(
            {"properties": {name: {"$ref": "#/$defs/p"} for name in NAMES}, "$defs": {"p": POINT}},
            {"properties": dict.fromkeys(NAMES, POINT)},
            id="arguments that are called as keywords",
        ),
    ],
)  # fmt: skip
def test_references_are_replaced_by_what_they_name(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    before = json.dumps(schema)
    assert inlined_references(schema) == expected
    assert json.dumps(schema) == before


def test_a_reference_that_leads_back_to_itself_stays() -> None:
    tree: dict[str, Any] = {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}}
    found = inlined_references({"$ref": "#/$defs/tree", "$defs": {"tree": tree}})
    assert found == tree


def test_references_that_name_much_again_and_again_stay_within_bounds() -> None:
    """Each names the next one twice: whole, it would have two to the power of thirty parts."""
    steps: dict[str, Any] = {
        f"s{n}": {"properties": {name: {"$ref": f"#/$defs/s{n + 1}"} for name in "ab"}} for n in range(30)
    }
    found = inlined_references({"$ref": "#/$defs/s0", "$defs": {**steps, "s30": POINT}})
    assert len(json.dumps(found)) < 2_000_000
