"""Errors under empty names are told where they are."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.schema.engine import validator_for

TEXT = {"type": "string"}
DEEP = {"additionalProperties": {"$ref": "#/$defs/deep"}, "type": ["object", "string"]}


@pytest.mark.parametrize(
    ("payload", "pointers"),
    [
        ({"": 1}, ["/"]),
        ({"": {"": 1}}, ["//"]),
        ({"a": {"": {"b": 1}}}, ["/a//b"]),
        ({"": {"b": 1}, "b": 1}, ["//b", "/b"]),
        ({"": {"b": 1}, "b": "x"}, ["//b"]),
        ({"": 1, "b": {"": 1, "c": 1}}, ["/", "/b/", "/b/c"]),
        ({"": "x", "a": 1}, ["/a"]),
        ({"a": '"":', "b": 1}, ["/b"]),
        (1, [""]),
    ],
)
def test_an_empty_name_is_part_of_the_pointer(payload: Any, pointers: list[str]) -> None:
    validator = validator_for({"$defs": {"deep": DEEP}, **DEEP})
    assert [finding.pointer for finding in validator.findings_of_own(payload, 1)] == pointers


def test_a_pointer_counts_items_beside_empty_names() -> None:
    validator = validator_for({"properties": {"": {"items": {"properties": {"": TEXT}}}}})
    found = validator.findings_of_own({"": [{"": "a"}, {"": 1}, {"": 1}]}, 1)
    assert [finding.pointer for finding in found] == ["//1/", "//2/"]
