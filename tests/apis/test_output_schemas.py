"""A tool's announced schema allows that the API answers with nothing."""

from __future__ import annotations

import pytest

from portbook.apis.output_schemas import or_nothing
from portbook.model import JSONObject
from portbook.schema.engine import validator_for

NULL: JSONObject = {"type": "null"}
TEXT: JSONObject = {"type": "string"}
NAMED: JSONObject = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, True),
        (NULL, NULL),
        (TEXT, {"anyOf": [TEXT, NULL]}),
        ({"anyOf": [TEXT, NULL]}, {"anyOf": [TEXT, NULL]}),
        ({"anyOf": [TEXT, {"type": "array"}]}, {"anyOf": [TEXT, {"type": "array"}, NULL]}),
        ({"anyOf": [TEXT], "maxLength": 3}, {"anyOf": [{"anyOf": [TEXT], "maxLength": 3}, NULL]}),
        (NAMED, {"anyOf": [{"$ref": "#/$defs/A"}, NULL], "$defs": {"A": {"type": "integer"}}}),
    ],
)
def test_a_schema_allows_null_beside_what_it_did(schema: JSONObject | bool, expected: JSONObject) -> None:
    assert or_nothing(schema) == expected


def test_references_still_find_their_definitions() -> None:
    validator = validator_for(or_nothing(NAMED))
    assert [validator.is_valid(value) for value in (5, None, "5")] == [True, True, False]
