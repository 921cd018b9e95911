"""Several schema files as one document that the engine can compile."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.schema.cache import validator_for
from portbook.schema.cross_file_references import bundle
from portbook.schema.engine import BadSchema

FILES: dict[str, Any] = {
    "leaf.v1": {"$id": "leaf.v1", "type": "integer", "$defs": {"word": {"type": "string"}}},
    "tree.v1": {
        "$id": "tree.v1",
        "type": "object",
        "properties": {
            "leaf": {"$ref": "leaf.v1"},
            "below": {"$ref": "tree.v1"},
            "own": {"$ref": "#/$defs/own"},
        },
        "$defs": {"own": {"const": "tree"}},
    },
    "other.json": {"$id": "elsewhere", "type": "boolean"},
}


def test_what_is_referred_to_by_name_is_inside_and_so_is_what_that_refers_to() -> None:
    schema = {
        "$id": "root.v1",
        "properties": {"tree": {"$ref": "tree.v1"}, "word": {"$ref": "leaf.v1#/$defs/word"}},
        "$defs": {"own": {"const": "root"}},
    }
    whole = bundle(schema, FILES.get)
    assert set(whole["$defs"]) == {"own", "tree.v1", "leaf.v1"}
    validator = validator_for(whole)
    assert validator.is_valid({"tree": {"leaf": 1, "own": "tree", "below": {"leaf": 2}}, "word": "x"})
    for wrong, pointer in (
        ({"tree": {"leaf": "1"}}, "/tree/leaf"),
        ({"tree": {"own": "root"}}, "/tree/own"),
        ({"tree": {"below": {"leaf": None}}}, "/tree/below/leaf"),
        ({"word": 1}, "/word"),
    ):
        assert [finding.pointer for finding in validator.findings(wrong)] == [pointer]


def test_a_schema_goes_by_the_name_that_it_is_referred_to_by() -> None:
    validator = validator_for(bundle({"properties": {"a": {"$ref": "other.json"}}}, FILES.get))
    assert [validator.is_valid({"a": value}) for value in (True, 1)] == [True, False]


def test_nothing_is_added_where_nothing_is_referred_to() -> None:
    schema = {"$id": "alone", "properties": {"$ref": {"type": "string"}}, "const": {"$ref": "leaf.v1"}}
    assert bundle(schema, FILES.get) is schema
    assert bundle(True, FILES.get) is True


def test_nothing_that_was_handed_in_is_changed() -> None:
    before = repr(FILES)
    bundle({"$ref": "tree.v1"}, FILES.get)
    assert repr(FILES) == before


def test_a_name_that_nobody_has_is_left_for_the_engine_to_refuse() -> None:
    with pytest.raises(
        BadSchema, match=r"/properties/a/\$ref: refers to something that is not in this document"
    ):
        validator_for(bundle({"properties": {"a": {"$ref": "no.such"}}}, FILES.get))
