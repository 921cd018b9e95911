"""Both sides of a definition, part by part, with nothing left out."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.pins.difference import compared_parts

APPROVED: dict[str, Any] = {
    "description": "Sends.",
    "inputSchema": {"properties": {"a/b": {"type": "string"}, "old": {}}, "required": ["old"]},
    "title": "Send",
}
OBSERVED: dict[str, Any] = {
    "title": "Send",
    "description": "Sends it.",
    "inputSchema": {"required": [], "properties": {"a/b": {"type": "number"}, "new": {}}},
}


def test_only_parts_that_differ_are_compared_each_with_both_sides() -> None:
    words, schema = compared_parts(APPROVED, OBSERVED)
    assert words.as_data() == {
        "part": "description",
        "approved": "Sends.",
        "observed": "Sends it.",
        "places": [{"pointer": "", "approved": "Sends.", "observed": "Sends it."}],
    }
    assert (schema.approved, schema.observed) == (APPROVED["inputSchema"], OBSERVED["inputSchema"])
    assert [(place.pointer, place.before, place.after) for place in schema.places] == [
        ("/properties/a~1b/type", "string", "number"),
        ("/properties/new", None, {}),
        ("/properties/old", {}, None),
        ("/required", ["old"], []),
    ]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_definition_that_one_side_lacks_is_compared_whole(is_new: bool) -> None:
    sides = (None, OBSERVED) if is_new else (OBSERVED, None)
    found = list(compared_parts(*sides))
    assert [each.part for each in found] == ["description", "inputSchema", "title"]
    assert all((each.approved is None) is is_new for each in found)
