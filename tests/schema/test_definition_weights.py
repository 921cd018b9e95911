"""Schemas that share definitions: the same verdicts as on each schema alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from portbook.schema.evaluation_cost import (
    CIRCULAR,
    TOO_COSTLY,
    TOO_NESTED,
    DefinitionWeights,
    examine,
    referred_names,
)
from support.counts import count, seed


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def doubling(keyword: str, steps: int) -> dict[str, Any]:
    return {f"s{n}": {keyword: [ref(f"s{n + 1}")] * 2} for n in range(steps)} | {f"s{steps}": True}


def leading_back(steps: int, back: Any) -> dict[str, Any]:
    return {**doubling("allOf", steps), f"s{steps}": back}


def problem(definitions: dict[str, Any], schema: Any = None) -> str | None:
    whole = {**(schema or ref(next(iter(definitions)))), "$defs": definitions}
    return DefinitionWeights(definitions).problem_of(whole)


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        (doubling("allOf", 12), None),
        (doubling("allOf", 16), TOO_COSTLY),
        (doubling("anyOf", 60), TOO_COSTLY),
        ({f"s{n}": ref(f"s{n + 1}") for n in range(600)} | {"s600": True}, TOO_NESTED),
        ({"a": ref("a")}, CIRCULAR),
        ({"a": {"allOf": [ref("b")]}, "b": {"not": ref("a")}}, CIRCULAR),
        ({"a": {"properties": {"x": ref("a")}}}, None),
        (leading_back(12, {"properties": {"a": ref("s0")}}), TOO_COSTLY),
        (leading_back(12, {"items": ref("s6")}), TOO_COSTLY),
        (leading_back(4, {"properties": {"a": ref("s0"), "b": ref("s2")}}), None),
        ({"a": {"items": {"anyOf": [ref("a"), {"type": "string"}]}}}, None),
    ],
)
def test_costs_are_bounded(definitions: dict[str, Any], expected: str | None) -> None:
    assert problem(definitions) == expected
    alone = examine({**ref(next(iter(definitions))), "$defs": definitions})
    assert [finding.message for finding in alone] == ([] if expected is None else [expected])


def test_properties_are_different_values_and_do_not_add_up() -> None:
    """A schema in which each of sixty objects holds the next one twice is large, and yet cheap."""
    chain: dict[str, Any] = {
        f"s{n}": {"properties": {"a": ref(f"s{n + 1}"), "b": ref(f"s{n + 1}")}} for n in range(60)
    }
    assert problem(chain | {"s60": True}) is None
    # The same member looked at twice does add up.
    twice: dict[str, Any] = {
        f"s{n}": {"anyOf": [{"properties": {"a": ref(f"s{n + 1}")}}] * 2} for n in range(60)
    }
    assert problem(twice | {"s60": True}) == TOO_COSTLY


def test_the_order_of_questions_does_not_change_the_answers() -> None:
    """Whoever refers to a part of a cycle refers to all of it, also where that was weighed before."""
    definitions = leading_back(12, {"properties": {"a": ref("s0")}})
    weights = DefinitionWeights(definitions)
    for name in reversed(definitions):
        assert weights.problem_of({**ref(name), "$defs": definitions}) == TOO_COSTLY


@pytest.mark.timeout(20)
def test_a_long_chain_is_weighed_in_one_walk() -> None:
    """Not an assertion about speed: a walk from each of the definitions takes minutes."""
    chain = {f"s{n}": {"allOf": [ref(f"s{n + 1}")]} for n in range(20_000)} | {"s20000": True}
    assert problem(chain) == TOO_NESTED
    assert problem(chain | {"s20000": ref("s0")}) == CIRCULAR


def test_names_and_data_that_look_like_references_are_none() -> None:
    schema = {
        "properties": {"$ref": {"type": "string"}},
        "enum": [ref("x")],
        "items": ref("a"),
        "not": ref("b"),
    }
    assert sorted(referred_names(schema)) == ["a", "b"]


@pytest.mark.soak("random schemas")
def test_the_verdict_is_that_on_the_schema_alone() -> None:
    chance = random.Random(seed())
    for _ in range(count("random schemas")):
        definitions = _random_definitions(chance)
        weights = DefinitionWeights(definitions)
        for name in definitions:
            whole = {**ref(name), "$defs": _closure(definitions, name)}
            messages = [finding.message for finding in examine(whole)]
            assert ([] if (told := weights.problem_of(whole)) is None else [told]) == messages


def _random_definitions(chance: random.Random) -> dict[str, Any]:
    """Definitions that refer only to later ones, so that the order of weighing cannot matter."""
    names = [f"d{n}" for n in range(chance.randint(2, 20))]
    return {name: _random_schema(chance, names[at + 1 :]) for at, name in enumerate(names)}


def _random_schema(chance: random.Random, later: list[str]) -> Any:
    if not later:
        return {"type": "string"}
    targets = [ref(chance.choice(later)) for _ in range(chance.randint(1, 3))]
    kind = chance.choice(["allOf", "anyOf", "properties", "items", "patternProperties", "unevaluatedItems"])
    if kind in ("allOf", "anyOf"):
        return {kind: targets}
    if kind in ("items", "unevaluatedItems"):
        return {kind: targets[0], "contains": targets[-1], "not": targets[0]}
    return {kind: {f"p{n}": target for n, target in enumerate(targets)}, "allOf": targets[:1]}


def _closure(definitions: dict[str, Any], name: str) -> dict[str, Any]:
    needed, found = [name], dict[str, Any]()
    while needed:
        each = needed.pop()
        if each not in found:
            found[each] = definitions[each]
            needed.extend(referred_names(definitions[each]))
    return found
