"""Which parts of a schema speak of a place, and which references are only words."""

from __future__ import annotations

from support.compared_schemas import verdict


def test_a_word_in_a_description_is_no_dynamic_reference() -> None:
    assert verdict({"description": 'no "$dynamicRef"', "type": "integer"}, {"type": "number"}) == "compatible"
    dynamic = {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}
    assert verdict(dynamic, dynamic) == "unknown"
