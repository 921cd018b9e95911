"""Which parts of a schema speak of a place, and which references are only words."""

from __future__ import annotations

from portbook.assets.compat.subschemas import Subschemas
from portbook.errors import Finding
from support.compared_schemas import made, verdict


def test_a_word_in_a_description_is_no_dynamic_reference() -> None:
    assert verdict({"description": 'no "$dynamicRef"', "type": "integer"}, {"type": "number"}) == "compatible"
    dynamic = {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}
    assert verdict(dynamic, dynamic) == "unknown"


def test_the_place_of_a_finding_is_one_that_the_schema_has() -> None:
    schema = Subschemas(*made({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "null"}}}))
    for given, place in (("/$defs/n/type", "/$defs/n/type"), ("/properties/a/allOf/0/not", "/properties/a")):
        assert schema.place_of(Finding("", "", "type", given, "file:///s.json")) == place
