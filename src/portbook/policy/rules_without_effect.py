"""Rules that can never take effect: a different one always wins, or no value meets a condition. Pure: no I/O.

A yes is certain. A no is not: schemas can contradict themselves in ways that are not looked for.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final, cast

from portbook.canonical import canonical_bytes
from portbook.globs import covers
from portbook.model import JSON, JSONObject
from portbook.policy.rule import Action, Rule
from portbook.policy.where_condition import UntoldTypes, spoken_types
from portbook.schema.engine import BadSchema, compile_schema
from portbook.text.named_tuple import NamedTuple

__all__ = ["hidden_by", "is_contradictory"]

_ORDER: Final = list(Action)


def hidden_by(rule: Rule, rules: tuple[Rule, ...]) -> Rule | None:
    """Return a rule that wins wherever `rule` matches, so that `rule` can never decide, or None."""
    for other in rules:
        if other is rule:
            continue
        rank, own = _ORDER.index(other.action), _ORDER.index(rule.action)
        comes_first = rank < own or (rank == own and rules.index(other) < rules.index(rule))
        if comes_first and _matches_all_of(other, rule):
            return other
    return None


def _matches_all_of(wide: Rule, narrow: Rule) -> bool:
    lists = ("tools", "kinds", "effects", "tags", "callers", "sessions")
    return all(_covers(getattr(wide, name), getattr(narrow, name)) for name in lists) and (
        not wide.where or _conditions(wide) == _conditions(narrow)
    )


def _covers(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    return all(any(covers(each, pattern) for each in wide) for pattern in narrow)


def _conditions(rule: Rule) -> bytes:
    return canonical_bytes(rule.as_data()["where"])


# Conditions that no value can meet.


class _Range(NamedTuple):
    """Keywords that limit one thing from both sides."""

    types: frozenset[str]
    """The types whose values alone they constrain."""
    lowest: tuple[str, ...]
    highest: tuple[str, ...]


_RANGES: Final = (
    _Range(
        frozenset({"number", "integer"}), ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
    ),
    _Range(frozenset({"string"}), ("minLength",), ("maxLength",)),
    _Range(frozenset({"array"}), ("minItems",), ("maxItems",)),
    _Range(frozenset({"object"}), ("minProperties",), ("maxProperties",)),
)


def is_contradictory(schema: JSONObject | bool) -> bool:
    """Return whether no value of the types that `schema` speaks of can satisfy it."""
    parts = list(_parts(schema))
    if any(part is False or _refuses_all(part) for part in parts):
        return True
    objects = [part for part in parts if isinstance(part, dict)]
    spoken = _spoken(schema)
    # A string satisfies every limit of numbers; where the schema speaks of both, it can be satisfied.
    is_out_of_range = any(
        spoken and spoken <= limits.types and _is_empty(limits, objects) for limits in _RANGES
    )
    return is_out_of_range or _has_no_choice(schema, objects)


def _spoken(schema: JSONObject | bool) -> frozenset[str]:
    try:
        return spoken_types(schema) or frozenset()
    except UntoldTypes:
        return frozenset()


def _parts(schema: JSON) -> chain[JSON]:
    """Return a schema and all schemas of its `allOf`: a value has to satisfy each."""
    below = schema.get("allOf") if isinstance(schema, dict) else None
    return chain((schema,), *(_parts(each) for each in (below if isinstance(below, list) else ())))


def _refuses_all(part: JSON) -> bool:
    return isinstance(part, dict) and (part.get("not") in (True, {}) or part.get("type") == [])


def _is_empty(limits: _Range, parts: list[JSONObject]) -> bool:
    """Return whether a lower limit is above an upper one."""
    lowest = [(value, name) for part in parts for name, value in _numbers(part, limits.lowest)]
    highest = [(value, name) for part in parts for name, value in _numbers(part, limits.highest)]
    return any(
        low > high or (low == high and (under.startswith("exclusive") or over.startswith("exclusive")))
        for low, under in lowest
        for high, over in highest
    )


def _numbers(part: JSONObject, names: tuple[str, ...]) -> list[tuple[str, float]]:
    values = ((name, part.get(name)) for name in names)
    return [
        (name, value)
        for name, value in values
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _has_no_choice(schema: JSONObject | bool, parts: list[JSONObject]) -> bool:
    """Return whether `const` or `enum` name the values, and the schema allows none of them."""
    named: list[Any] = [part["const"] for part in parts if "const" in part][:1]
    lists = [part["enum"] for part in parts if isinstance(part.get("enum"), list)]
    if not named and not lists:
        return False
    try:
        validator = compile_schema(cast("Any", schema), "")
    except BadSchema:
        return False
    return not any(map(validator.allows, named or cast("list[Any]", lists[0])))
