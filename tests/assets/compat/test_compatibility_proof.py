"""Changes that break nothing are proved to, keyword by keyword."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.compat.compatibility_proof import OPAQUE, SILENT, WHOLE, KeywordRules
from portbook.assets.compat.pattern_comparison import TextLanguages
from portbook.assets.compat.subschemas import Place, Subschemas
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


# Each keyword of the new schema follows from the old one by a rule of its own, or does not.


def follows(keyword: str, old: Any, new: Any, *proved_below: tuple[Place, Place]) -> bool:
    """Whether `keyword` at the root of `new` follows from `old`, if these statements hold below it."""
    new_side, old_side = Subschemas(*made(new)), Subschemas(*made(old))

    def holds(new_place: Place, old_place: Place) -> bool:
        return (new_place, old_place) in proved_below

    rules = KeywordRules(new_side, old_side, TextLanguages(), holds, lambda new, old, keywords: False)
    return rules.by_keyword[keyword](new_side.bundle, (), old_side.root)


@pytest.mark.parametrize(
    ("keyword", "old", "new", "is_so"),
    [
        case("a wider type", "type", {"type": "integer"}, {"type": "number"}, True),
        case("a narrower type", "type", {"type": "number"}, {"type": "integer"}, False),
        case("a longer list", "enum", {"enum": [1]}, {"enum": [1.0, 2]}, True),
        case("a shorter list", "enum", {"enum": [1, 2]}, {"enum": [1]}, False),
        case("the only one", "const", {"enum": [1]}, {"const": 1}, True),
        case("a lower bound", "minimum", {"minimum": 2}, {"minimum": 1}, True),
        case("a higher bound", "minimum", {"minimum": 1}, {"minimum": 2}, False),
        case("now exclusive", "exclusiveMaximum", {"maximum": 1}, {"exclusiveMaximum": 1}, False),
        case("never negative", "minItems", {}, {"minItems": 0}, True),
        case("a length of the pattern", "maxLength", {"pattern": "^a{2}$"}, {"maxLength": 2}, True),
        case("a length beyond the pattern", "maxLength", {"pattern": "^a+$"}, {"maxLength": 2}, False),
        case("a divisor", "multipleOf", {"multipleOf": 6}, {"multipleOf": 3}, True),
        case("no divisor", "multipleOf", {"multipleOf": 6}, {"multipleOf": 4}, False),
        case("an integer", "multipleOf", {"type": "integer"}, {"multipleOf": 1}, True),
        case("no longer unique", "uniqueItems", {}, {"uniqueItems": False}, True),
        case("unique now", "uniqueItems", {}, {"uniqueItems": True}, False),
        case("a wider pattern", "pattern", {"pattern": "^a$"}, {"pattern": "a"}, True),
    ],
)
def test_a_keyword_follows_from_what_the_old_schema_states(
    keyword: str, old: Any, new: Any, is_so: bool
) -> None:
    assert follows(keyword, old, new) is is_so


def test_one_branch_of_a_union_is_enough() -> None:
    new = {"anyOf": [{"type": "null"}, {"type": "string"}]}
    assert follows("anyOf", {}, new, ((("anyOf", 1),), ((),)))
    assert not follows("anyOf", {}, new)


def test_items_are_proved_one_by_one_and_then_the_rest() -> None:
    old, new = {"items": {}}, {"prefixItems": [{}], "items": {}}
    first, rest = ((("prefixItems", 0),), (("items",),)), ((("items",),), (("items",),))
    assert follows("items", old, new, first, rest)
    assert not follows("items", old, new, first)
    assert not follows("items", old, new, rest)


def test_every_keyword_of_the_dialect_is_spoken_of() -> None:
    from jsonschema import Draft202012Validator
    from jsonschema_specifications import REGISTRY

    nothing = Subschemas(*made({}))
    rules = KeywordRules(nothing, nothing, TextLanguages(), lambda new, old: False, lambda *_: False)
    known = {*rules.by_keyword, *OPAQUE, *WHOLE, *SILENT}
    vocabularies = [part["$ref"] for part in Draft202012Validator.META_SCHEMA["allOf"]]
    base = Draft202012Validator.META_SCHEMA["$id"].removesuffix("schema")
    for vocabulary in vocabularies:
        keywords = REGISTRY.contents(base + vocabulary)["properties"]
        assert known.issuperset(keywords), set(keywords) - known
