"""Changes of schemas: every break has its proof, every "compatible" is true, and the rest is unknown."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portbook.assets.compat.regex_samples import sample
from portbook.assets.compat.verdict import Compatibility, compare
from portbook.model import JSONObject
from portbook.schema.cache import validator_for
from portbook.schema.engine import Validator
from support.counts import count


def made(schema: Any) -> tuple[JSONObject, Validator]:
    bundle = {"$id": "file:///s.json", **schema}
    return bundle, validator_for(bundle)


def verdict(old: Any, new: Any) -> str:
    """Compare; where it breaks, make sure that it does."""
    before, after = made(old), made(new)
    found = compare(before, after)
    if found.verdict is Compatibility.BREAKS:
        assert before[1].is_valid(found.instance)
        assert not after[1].is_valid(found.instance)
        assert found.findings
    return found.verdict.value


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


NAME = {"type": "string"}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": NAME, "age": {"type": "integer", "minimum": 0}},
}
CLOSED = {**PERSON, "additionalProperties": False}
TREE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": NAME}}


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
        case("closed", PERSON, CLOSED),
        case("a property less", CLOSED, {**CLOSED, "properties": {"name": NAME}}),
        case("required", PERSON, {**PERSON, "required": ["name"]}),
        case(
            "a new requirement",
            CLOSED,
            {**CLOSED, "properties": {**CLOSED["properties"], "x": {}}, "required": ["x"]},
        ),
        case("a narrower type", {"type": ["string", "null"]}, NAME),
        case("whole numbers only", {"type": "number"}, {"type": "integer"}),
        case("one less of a list", {"enum": ["a", "b"]}, {"enum": ["a"]}),
        case("narrower limits", {"maximum": 10}, {"maximum": 9}),
        case("exclusive", {"maximum": 10}, {"exclusiveMaximum": 10}),
        case("shorter", {"type": "string", "maxLength": 300}, {"type": "string", "maxLength": 299}),
        case("longer", NAME, {"type": "string", "minLength": 1}),
        case("fewer items", {"maxItems": 3}, {"maxItems": 2}),
        case("more items", {"type": "array"}, {"type": "array", "minItems": 1}),
        case("no item twice", {"type": "array"}, {"type": "array", "uniqueItems": True}),
        case("fewer properties", {"type": "object"}, {"type": "object", "maxProperties": 2}),
        case("a pattern", {"pattern": "^[a-z]+$"}, {"pattern": "^[a-z]{2,}$"}),
        case("a format", NAME, {"type": "string", "format": "date-time"}),
        case(
            "deep inside",
            {"properties": {"a": {"items": PERSON}}},
            {"properties": {"a": {"items": {**PERSON, "required": ["age"]}}}},
        ),
        case(
            "behind a required pattern",
            {"properties": {"id": {"type": "string", "pattern": "^A-[0-9]{4}$"}}, "required": ["id"]},
            {
                "properties": {"id": {"type": "string", "pattern": "^A-[0-9]{4}$"}, "n": {"type": "integer"}},
                "required": ["id"],
            },
        ),
        case("a form less", {"anyOf": [NAME, {"type": "null"}]}, {"anyOf": [NAME]}),
        case("exactly one", {"anyOf": [NAME, {"minLength": 1}]}, {"oneOf": [NAME, {"minLength": 1}]}),
        case("a tree's nodes", TREE, {**TREE, "required": ["name"]}),
        case("nothing at all", {}, {"not": {}}),
        case(
            "a required date",
            {"properties": {"d": {"type": "string", "format": "date"}}, "required": ["d"]},
            {"properties": {"d": {"type": "string", "format": "date-time"}}, "required": ["d"]},
        ),
        case(
            "a pattern's properties", {"patternProperties": {"^x-": {}}}, {"patternProperties": {"^x-": NAME}}
        ),
        case(
            "by another version of a definition",
            {"$ref": "#/$defs/a", "$defs": {"a": PERSON}},
            {"$ref": "#/$defs/a", "$defs": {"a": CLOSED}},
        ),
        case(
            "one of two variants",
            {
                "oneOf": [
                    {"properties": {"k": {"const": "a"}}, "required": ["k"]},
                    {"properties": {"k": {"const": "b"}, "n": NAME}, "required": ["k", "n"]},
                ]
            },
            {"properties": {"k": {"const": "a"}}, "required": ["k"]},
        ),
    ],
)
def test_a_change_that_breaks_has_an_instance_to_show(old: Any, new: Any) -> None:
    assert verdict(old, new) == "breaks"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("other words for the same", {"not": {"not": NAME}}, NAME),
        case("needles in haystacks", {"multipleOf": 7919}, {"not": {"const": 7919 * 7919}}),
    ],
)
def test_what_cannot_be_decided_is_unknown(old: Any, new: Any) -> None:
    assert verdict(old, new) == "unknown"


META = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        case("at the root", {}, {"$ref": META}, "breaks"),
        case("below", {"type": "object"}, {"properties": {"a": {"$ref": META}}}, "breaks"),
        case("where nothing breaks", {"const": {}}, {"allOf": [{"$ref": META}]}, "compatible"),
        case("in both", {"$ref": META, "minimum": 1}, {"$ref": META}, "compatible"),
        case(
            "in both, another", {"$ref": META.removesuffix("schema") + "meta/core"}, {"$ref": META}, "unknown"
        ),
        case(
            "in the words of one with a target",
            {
                "$id": "https://a.example/x",
                "$ref": "schema",
                "$defs": {"s": {"$id": "schema", "not": {"const": 7.5}}},
            },
            {"$id": "https://json-schema.org/draft/2020-12/x", "$ref": "schema"},
            "breaks",
        ),
    ],
)
def test_a_reference_to_the_meta_schema_is_no_silence(old: Any, new: Any, expected: str) -> None:
    assert verdict(old, new) == expected


def test_a_value_that_is_referred_to_is_still_a_value() -> None:
    def forbids(title: int) -> Any:
        return {"not": {"const": {"title": title}}, "$defs": {"a": {"$ref": "#/not/const"}}}

    assert verdict(forbids(1), forbids(2)) != "compatible"
    assert verdict(forbids(1), forbids(1)) == "compatible"


def test_a_word_in_a_description_is_no_dynamic_reference() -> None:
    assert verdict({"description": 'no "$dynamicRef"', "type": "integer"}, {"type": "number"}) == "compatible"
    dynamic = {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}
    assert verdict(dynamic, dynamic) == "unknown"


def test_every_keyword_of_the_dialect_is_spoken_of() -> None:
    from jsonschema import Draft202012Validator
    from jsonschema_specifications import REGISTRY

    from portbook.assets.compat import proof as inclusion
    from portbook.assets.compat.subschemas import Subschemas

    proof = inclusion._Prover(Subschemas(*made({})), Subschemas(*made({})))
    known = {*proof._rules, *inclusion._OPAQUE, *inclusion._WHOLE, *inclusion.SILENT}
    vocabularies = [part["$ref"] for part in Draft202012Validator.META_SCHEMA["allOf"]]
    base = Draft202012Validator.META_SCHEMA["$id"].removesuffix("schema")
    for vocabulary in vocabularies:
        keywords = REGISTRY.contents(base + vocabulary)["properties"]
        assert known.issuperset(keywords), set(keywords) - known


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        case(
            "properties",
            {"type": "object", "maxProperties": 2 * 10**9},
            {"type": "object", "maxProperties": 2 * 10**9 - 1},
            "unknown",
        ),
        case(
            "items of items of items",
            {
                "type": "array",
                "minItems": 1000,
                "items": {"type": "array", "minItems": 1000, "items": {"type": "array", "minItems": 1000}},
            },
            {"type": "array", "maxItems": 1},
            "unknown",
        ),
        case("characters", {"type": "string"}, {"type": "string", "maxLength": 2 * 10**9}, "unknown"),
        case("some characters", {"type": "string"}, {"type": "string", "maxLength": 20_000}, "breaks"),
        case("many digits", {"maximum": 10**400}, {"maximum": 10**399}, "breaks"),
        case("all digits", {"maximum": 10**4299}, {"maximum": 10**4298}, "breaks"),
        case("the last float", {"maximum": 1e308}, {"maximum": 1e308, "not": {"const": 77.25}}, "unknown"),
    ],
)
def test_a_limit_that_is_too_large_to_be_tried_costs_nothing(old: Any, new: Any, expected: str) -> None:
    assert verdict(old, new) == expected


def test_a_schema_without_an_address_is_searched_like_any_other() -> None:
    old: Any = {"items": {"enum": ["a", "b"]}}
    new: Any = {"items": {"enum": ["a"]}}
    found = compare((old, validator_for(old)), (new, validator_for(new)))
    assert (found.verdict, found.instance) == (Compatibility.BREAKS, ["b"])


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
        case("a name that another needs", {"type": "object"}, {"dependentRequired": {"a": ["b"]}}),
        case(
            "the end of a range",
            {"type": "string", "pattern": "^[a-z]+$"},
            {"type": "string", "pattern": "^[a-f]+$"},
        ),
    ],
)
def test_breaks_that_are_easily_overlooked_are_found(old: Any, new: Any) -> None:
    assert verdict(old, new) == "breaks"


@pytest.mark.filterwarnings("error")
def test_a_pattern_that_python_may_read_otherwise_some_day_warns_nobody() -> None:
    assert sample("^[a-z--b]+$") is not None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 4) | st.sampled_from([0.5, 1.0, "", "a", "ab", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SCHEMAS = st.recursive(
    st.booleans()
    | st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
            "minimum": st.integers(0, 2),
            "exclusiveMaximum": st.integers(1, 3),
            "maxLength": st.integers(0, 2),
            "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
            "multipleOf": st.integers(1, 3),
        },
    )
    | st.sampled_from([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^[bc]$"]), inner, max_size=1),
            "additionalProperties": inner,
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "const": VALUES,
            "contains": inner,
            "maxContains": st.integers(0, 2),
            "propertyNames": st.sampled_from([{"maxLength": 1}, {"enum": ["a", "b"]}]),
            "dependentRequired": st.just({"a": ["b"]}),
            "dependentSchemas": st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
            "unevaluatedProperties": inner,
            "unevaluatedItems": inner,
        },
    ),
    max_leaves=4,
)
DEFINITIONS = st.fixed_dictionaries(
    {
        "a": st.sampled_from([NAME, {"type": "integer"}, {"items": {"$ref": "#/$defs/b"}}]),
        "b": st.sampled_from([{"minimum": 1}, {"properties": {"a": {"$ref": "#/$defs/a"}}}, True]),
    }
)
WHOLE = st.builds(
    lambda schema, definitions: {
        **(schema if isinstance(schema, dict) else {"allOf": [schema]}),
        "$defs": definitions,
    },
    SCHEMAS,
    DEFINITIONS,
)


def widened(schema: Any, random: random.Random) -> Any:
    """A schema with some of its keywords left out, at any depth: often a compatible change."""
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name == "$defs" or random.random() > 0.2}
    return {
        name: {key: widened(below, random) for key, below in value.items()}
        if name in ("properties", "patternProperties")
        else widened(value, random)
        if name in ("items", "additionalProperties")
        else value
        for name, value in kept.items()
    }


@pytest.mark.soak("random schemas")
@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    max_examples=count("random schemas"),
)
@given(
    old=WHOLE,
    other=WHOLE,
    values=st.lists(VALUES, min_size=5, max_size=20),
    seed=st.randoms(use_true_random=False),
    is_wider=st.booleans(),
)
def test_no_verdict_is_ever_wrong(
    old: Any, other: Any, values: list[Any], seed: random.Random, is_wider: bool
) -> None:
    new = widened(old, seed) if is_wider else other
    try:
        before, after = made(old)[1], made(new)[1]
    except ValueError:
        return  # a circle, which no schema may have
    if verdict(old, new) == "compatible":
        for value in values:
            assert not before.is_valid(value) or after.is_valid(value), (old, new, value)


@pytest.mark.parametrize(
    "pattern", ["^A-[0-9]{4}$", "a|b", "[^a]b", r"\d+\w\s", "(x(y)?){2}", ".", "", r"^[\w.]+@x\.org$"]
)
def test_a_sampled_text_matches_its_pattern(pattern: str) -> None:
    for more in (0, 1, 5):
        text = sample(pattern, more)
        assert text is not None
        assert validator_for({"pattern": pattern}).is_valid(text), (pattern, text)


@pytest.mark.parametrize(
    "pattern", ["(", "a{5000}", "((a{99}){99}){99}", "(((((a{99}){99}){99}){99}){99})", "(?<n>a)"]
)
def test_a_pattern_that_cannot_be_sampled_has_no_text(pattern: str) -> None:
    assert sample(pattern) is None
