"""The same words mean the same only where what they refer to is the same."""

from __future__ import annotations

from typing import Any

import pytest

from support.compared_schemas import case, verdict

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
