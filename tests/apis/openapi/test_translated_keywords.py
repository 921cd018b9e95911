"""Keywords as vendors write them: corrected where the meaning is clear, dropped where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.openapi.translated_keywords import DROPPED, translated

TRANSLATIONS: list[tuple[str, Any, Any]] = [
    ("type", "string", "string"),
    ("type", "String", "string"),
    ("type", "file", "string"),
    ("type", "float", "number"),
    ("type", "any", DROPPED),
    ("type", "Pet", DROPPED),
    ("type", 5, DROPPED),
    ("type", [], DROPPED),
    ("type", ["string", "null"], ["string", "null"]),
    ("type", ["string", None, "str"], ["string", "null"]),
    ("type", ["string", "any"], DROPPED),
    ("required", ["a", "b", "a"], ["a", "b"]),
    ("required", ["a", 5], ["a"]),
    ("required", True, DROPPED),
    ("enum", ["a", "b", "a"], ["a", "b"]),
    ("enum", [1, True, 1], [1, True]),
    ("enum", [], DROPPED),
    ("enum", "a", DROPPED),
    ("const", {"a": None}, {"a": None}),
    ("maxLength", "10", 10),
    ("maxLength", 10.0, 10),
    ("maxLength", -1, DROPPED),
    ("maxLength", 1.5, DROPPED),
    ("maxLength", True, DROPPED),
    ("maxLength", 1e300, DROPPED),
    ("minimum", "-1.5", -1.5),
    ("minimum", "5", 5),
    ("minimum", "2020-01-01", DROPPED),
    ("exclusiveMinimum", True, DROPPED),
    ("exclusiveMinimum", 3, 3),
    ("multipleOf", 0, DROPPED),
    ("multipleOf", 0.01, 0.01),
    ("uniqueItems", "true", True),
    ("uniqueItems", 1, DROPPED),
    ("description", ["a"], DROPPED),
    ("format", "int32", "int32"),
    ("dependentRequired", {"a": ["b", "b"], "c": {}}, {"a": ["b"]}),
    ("dependentRequired", ["a"], DROPPED),
    ("x-nullable", True, DROPPED),
    ("example", 1, DROPPED),
    ("$id", "a", DROPPED),
    ("collectionFormat", "csv", DROPPED),
]


@pytest.mark.parametrize(("keyword", "given", "expected"), TRANSLATIONS)
def test_a_value_is_corrected_or_dropped(keyword: str, given: Any, expected: Any) -> None:
    found = translated(keyword, given)
    assert (found, type(found)) == (expected, type(expected))
