"""The parts of a definition, and what their digests depend on."""

from __future__ import annotations

from portbook.pins.pinned_definitions import digest_of_part, is_same_part, parts_of


def test_parts_are_the_members_of_a_definition_but_for_its_name() -> None:
    found = parts_of({"name": "a", "title": "A", "annotations": None, "vendor": 7, "_meta": {"x": 1}})
    assert found == {"_meta": {"x": 1}, "title": "A", "vendor": 7}


def test_reserved_metadata_is_no_part() -> None:
    assert parts_of({"_meta": {"io.modelcontextprotocol/a": 1}}) == {}
    assert parts_of({"_meta": {"io.modelcontextprotocol/a": 1, "b": 2}}) == {"_meta": {"b": 2}}


def test_a_digest_depends_on_the_part_and_its_value_but_not_on_the_order_of_members() -> None:
    one = digest_of_part("annotations", {"a": 1, "b": 2})
    assert one == digest_of_part("annotations", {"b": 2, "a": 1})
    assert one != digest_of_part("annotations", {"a": 1, "b": 3})
    assert one != digest_of_part("execution", {"a": 1, "b": 2})
    assert digest_of_part("annotations", None) is None


def test_the_formula_is_pinned() -> None:
    assert digest_of_part("description", "Adds two numbers.") == (
        "7ff1386d3ccf3f81b4d7544d0044064289bc3a3ce71d3bcdc6de2b46f730dc80"
    )


def test_parts_are_compared_by_their_canonical_form() -> None:
    assert is_same_part({"a": 1, "b": [1]}, {"b": [1], "a": 1})
    assert not is_same_part({"a": 1}, {"a": True})
    assert not is_same_part(None, {})
