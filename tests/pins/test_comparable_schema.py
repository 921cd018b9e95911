"""Which schemas can be compared, and in which form."""

from __future__ import annotations

import pytest

from portbook.model import JSON
from portbook.pins.change_grades import comparable_schema
from portbook.schema.engine import BadSchema

DRAFT_07 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize("schema", [None, True])
def test_a_missing_schema_allows_everything(schema: JSON) -> None:
    assert comparable_schema(schema) == {}


@pytest.mark.parametrize("dialect", [DRAFT_07, DRAFT_07.removesuffix("#")])
def test_a_schema_of_draft_07_that_means_the_same_today_is_compared(dialect: str) -> None:
    body: dict[str, JSON] = {
        "type": "object",
        "properties": {"dependencies": {"type": "string"}, "a": {"$ref": "#/definitions/A", "title": "A"}},
        "definitions": {"A": {"type": "integer"}},
    }
    assert comparable_schema({"$schema": dialect, **body}) == body


@pytest.mark.parametrize(
    "schema",
    [
        7,
        False,
        {"type": "strin"},
        {"$ref": "https://elsewhere.example/schema"},
        {"$schema": "https://json-schema.org/draft/2019-09/schema"},
        {"$schema": DRAFT_07, "type": "strin"},
        {"$schema": DRAFT_07, "items": [{"type": "string"}]},
        {"$schema": DRAFT_07, "definitions": {"a": {"additionalItems": False}}},
        {"$schema": DRAFT_07, "properties": {"a": {"dependencies": {"b": ["c"]}}}},
        {
            "$schema": DRAFT_07,
            "properties": {"a": {"$ref": "#/definitions/A", "maxLength": 1}},
            "definitions": {"A": {}},
        },
        {"const": float("nan")},
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_refused(schema: JSON) -> None:
    with pytest.raises(BadSchema):
        comparable_schema(schema)
