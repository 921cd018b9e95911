"""Changes that break nothing are proved to, keyword by keyword."""

from __future__ import annotations

from typing import Any

import pytest

from support.compared_schemas import CLOSED, NAME, PERSON, TREE, case, made, verdict


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("nothing changed", PERSON, PERSON),
        case(
            "only the words around it",
            PERSON,
            {**PERSON, "title": "A person", "description": "x", "version": "2"},
        ),
        case("anything goes now", CLOSED, {}),
        case("a wider type", {"type": "integer"}, {"type": ["number", "string"]}),
        case("no longer required", {**PERSON, "required": ["name"]}, PERSON),
        case(
            "an optional property more", CLOSED, {**CLOSED, "properties": {**CLOSED["properties"], "x": {}}}
        ),
        case("opened", CLOSED, PERSON),
        case("wider limits", {"minimum": 1, "maximum": 5}, {"minimum": 0, "maximum": 5.5}),
        case("no longer exclusive", {"exclusiveMinimum": 1}, {"minimum": 1}),
        case("one more of a list", {"enum": [1, "a"]}, {"enum": ["a", 1.0, None]}),
        case("a constant of a list", {"const": 1}, {"enum": [1, 2]}),
        case("values of a type", {"enum": ["a", "b"]}, {"type": "string"}),
        case("a limit of a type that it never has", {"type": "string"}, {"type": "string", "minimum": 5}),
        case("a divisor of it", {"type": "integer", "multipleOf": 6}, {"multipleOf": 3}),
        case("one more form", {"anyOf": [NAME]}, {"anyOf": [{"type": "null"}, NAME]}),
        case("a form was all there was", NAME, {"anyOf": [NAME, {"type": "null"}]}),
        case(
            "behind a reference",
            {"$ref": "#/$defs/a", "$defs": {"a": NAME}},
            {"$ref": "#/$defs/b", "$defs": {"b": NAME}},
        ),
        case("a tree", {**TREE, "required": ["name"]}, TREE),
        case("items", {"items": {"minimum": 1}}, {"items": {"minimum": 0}}),
        case(
            "positions", {"prefixItems": [NAME], "items": False}, {"prefixItems": [{}, NAME], "items": False}
        ),
        case(
            "a pattern's properties", {"patternProperties": {"^a": NAME}}, {"patternProperties": {"^a": {}}}
        ),
        case(
            "the rest",
            {"properties": {"a": NAME}, "additionalProperties": {"type": "integer"}},
            {"additionalProperties": {"type": ["integer", "string"]}},
        ),
        case("the same words", {"not": NAME, "pattern": "^a", "format": "date"}, {"not": NAME}),
        case(
            "one of the same, by references",
            {"oneOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": PERSON}},
            {"oneOf": [{"$ref": "#/$defs/b"}, {"type": "null"}], "$defs": {"b": PERSON}, "title": "x"},
        ),
        case("what never was", {"type": "string", "enum": [1]}, {"type": "null"}),
    ],
)
def test_a_change_that_breaks_nothing_is_proved_to(old: Any, new: Any) -> None:
    assert verdict(old, new) == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("booleans", {"type": "boolean"}, {"enum": [True, False]}),
        case("null", {"type": "null"}, {"const": None}),
        case("words", {"enum": ["a", "b"]}, {"type": "string", "maxLength": 5, "pattern": "^[ab]$"}),
        case(
            "below",
            {"properties": {"a": {"type": "boolean"}}},
            {"properties": {"a": {"oneOf": [{"const": True}, {"const": False}]}}},
        ),
    ],
)
def test_what_has_few_values_is_proved_by_trying_them_all(old: Any, new: Any) -> None:
    assert verdict(old, new) == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("a wider pattern", {"pattern": "^[a-z]+$"}, {"pattern": "^[a-z0-9]+$"}),
        case("a length that the pattern has", {"pattern": "^[a-z]{3}$"}, {"minLength": 2, "maxLength": 3}),
        case(
            "wider names",
            {"patternProperties": {"^[a-z]+$": NAME}, "additionalProperties": False},
            {"patternProperties": {"^[a-z0-9]+$": NAME}, "additionalProperties": False},
        ),
        case(
            "names apart",
            {"properties": {"a": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": False},
            {"patternProperties": {"^y-": NAME}},
        ),
        case(
            "names of properties", {"propertyNames": {"pattern": "^a"}}, {"propertyNames": {"pattern": "a"}}
        ),
    ],
)
def test_patterns_are_compared_by_the_texts_that_they_match(old: Any, new: Any) -> None:
    assert verdict(old, new) == "compatible"


def test_every_place_that_is_not_proved_is_named() -> None:
    from portbook.assets.compat.verdict import compare

    old = {"properties": {name: {"not": {"not": NAME}} for name in "ab"}}
    new = {"properties": dict.fromkeys("ab", NAME), "maxProperties": 2_000_000_000}
    assert compare(made(old), made(new)).undecided == (
        "/properties/a/type",
        "/properties/b/type",
        "/maxProperties",
    )
