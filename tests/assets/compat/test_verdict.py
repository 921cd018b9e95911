"""Changes of schemas: every break has its proof, every "compatible" is true, and the rest is unknown."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.compared_schemas import NAME, case, made, verdict
from support.counts import count


@pytest.mark.parametrize(
    ("old", "new"),
    [
        case("other words for the same", {"not": {"not": NAME}}, NAME),
        case("needles in haystacks", {"multipleOf": 7919}, {"not": {"const": 7919 * 7919}}),
    ],
)
def test_what_cannot_be_decided_is_unknown(old: Any, new: Any) -> None:
    assert verdict(old, new) == "unknown"


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
