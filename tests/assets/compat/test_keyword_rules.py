"""Each keyword of the new schema follows from the old one by a rule of its own, or does not."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.compat.keyword_rules import OPAQUE, SILENT, WHOLE, KeywordRules
from portbook.assets.compat.pattern_comparison import TextLanguages
from portbook.assets.compat.subschemas import Place, Subschemas
from support.compared_schemas import case, made


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
