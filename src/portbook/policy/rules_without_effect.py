"""Rules that can never take effect, and limits that deny every call of an API. Pure: no I/O.

A different rule always wins, no tool that is served fits, or no value meets a condition. A yes is certain. A
no is not: schemas can contradict themselves in ways that are not looked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

from portbook.canonical import canonical_bytes
from portbook.globs import covers, is_pattern, matches
from portbook.model import JSON, JSONObject
from portbook.policy.decision_limits_rules_and_remedy import Action, Policy, Rule
from portbook.policy.where_condition import Reach, UntoldTypes, declared_names, reach, spoken_types
from portbook.schema.engine import BadSchema, compile_schema
from portbook.text.did_you_mean import did_you_mean
from portbook.text.named_tuple import NamedTuple
from portbook.tools.spec import ToolSpec

if TYPE_CHECKING:
    from portbook.tools.http_operation import HttpOperation

__all__ = [
    "doubts_of_gateway",
    "doubts_of_rule",
    "hidden_by",
    "impossible_condition",
    "is_contradictory",
    "matches_nothing",
]

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


# Patterns and conditions that fit nothing that is served.
#
# Certain mistakes stop the start: a rule that names its tools in full, and checks an argument that none of
# them takes. The rest are warnings, because one policy may govern several servers, and a tool may come later.


def matches_nothing(pattern: str, known: Sequence[str]) -> str:
    """Return what is told of a pattern that matches none of the `known` names."""
    hint = did_you_mean(pattern, known, "`portbook tools` lists what is served")
    return f"matches nothing that is served; {hint}"


def impossible_condition(rule: Rule, specs: Sequence[ToolSpec]) -> tuple[str, str] | None:
    """Return the place of a condition that no tool of the rule can meet, and why; None where there is none.

    Only of a rule that names its tools in full, all of which are served.
    """
    is_certain = all(not is_pattern(name) and _fitting((name,), rule, specs) for name in rule.tools)
    vain = _vain_condition(rule, specs)
    if vain is None or not is_certain or vain[1] is not Reach.CLOSED:
        return None
    hint = _hint(vain[0], rule, specs)
    return vain[0], f"can never be met: no tool of rule {rule.name!r} takes this argument; {hint}"


def doubts_of_rule(
    rule: Rule, specs: Sequence[ToolSpec], *, names_tools: bool
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the place in a rule, and what is in vain there: it fits nothing that is served.

    `names_tools` says whether the operator wrote which tools the rule is about.
    """
    known = sorted({spec.name for spec in specs if matches(rule.kinds, spec.policy_kind)})
    dead = [pattern for pattern in rule.tools if not any(matches((pattern,), name) for name in known)]
    if len(dead) == len(rule.tools):
        yield (), matches_nothing(dead[0], known)
        return
    for pattern in dead:
        yield ("tools",), f"names {pattern!r}, which {matches_nothing(pattern, known)}"
    if rule.selects_tags:
        tags = sorted({tag for spec in specs for tag in spec.tags})
        for pattern in (each for each in rule.tags if not any(matches((each,), tag) for tag in tags)):
            hint = did_you_mean(pattern, tags, "`portbook tools --tree` shows the tags")
            yield ("tags",), f"names the tag {pattern!r}, which nothing that is served has; {hint}"
    # A rule for every tool may name an effect that no tool has yet; one that names its tools speaks of these.
    if names_tools and not rule.selects_tags and not _about(rule, specs):
        effects = " or ".join(rule.effects)
        yield ("effects",), f"matches nothing that is served: no tool that it names has the effect {effects}"
    for each in rule.where:
        if is_contradictory(each.schema):
            yield (
                ("where", each.pointer),
                f"sets conditions for {each.pointer!r} that contradict each other; no value meets them",
            )
    vain = _vain_condition(rule, specs)
    if vain is not None:
        pointer, _ = vain
        hint = _hint(pointer, rule, specs)
        yield ("where", pointer), f"checks {pointer!r}, which no tool that it matches declares; {hint}"


def _vain_condition(rule: Rule, specs: Sequence[ToolSpec]) -> tuple[str, Reach] | None:
    """Return the pointer of a condition that no tool of `rule` declares, and how far one could be given it.

    None where a tool declares every place that the rule checks, or where the rule matches no tool.
    """
    about = _about(rule, specs)
    if not about or not rule.where:
        return None
    reached = [[reach(spec.input_schema, each.segments) for each in rule.where] for spec in about]
    best = max(min(row) for row in reached)
    if best is Reach.DECLARED:
        return None
    at = next(
        (at for at in range(len(rule.where)) if max(row[at] for row in reached) <= best),
        0,  # each place is declared by some tool, and all of them by none
    )
    return rule.where[at].pointer, best


def _about(rule: Rule, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    return [spec for spec in specs if rule.is_about(spec.policy_kind, spec.name, spec.effect, spec.tags)]


def _fitting(patterns: tuple[str, ...], rule: Rule, specs: Iterable[ToolSpec]) -> bool:
    return any(matches(patterns, spec.name) and matches(rule.kinds, spec.policy_kind) for spec in specs)


def _hint(pointer: str, rule: Rule, specs: Iterable[ToolSpec]) -> str:
    names = sorted({f"/{name}" for spec in _about(rule, specs) for name in declared_names(spec.input_schema)})
    return did_you_mean(pointer, names, "`portbook tools --json` shows the arguments of each tool")


# Limits that deny every call of an API.


def doubts_of_gateway(
    policy: Policy,
    gateway: str,
    operations: Sequence[HttpOperation],
    declared: str,
    place_of: Callable[[str], str],
) -> Iterator[str]:
    """Yield why the limits deny every call of a gateway, which is declared at a place.

    `place_of` returns the place of a limit, by its key.
    """
    yield from _doubts_of_hosts(gateway, operations, policy, declared, place_of("allowed_domains"))
    methods = {operation.method for operation in operations}
    if policy.methods is not None and not methods & policy.methods:
        missing, place = " or ".join(sorted(methods)), place_of("allowed_methods")
        yield (
            f"{place}: policy.allowed_methods has none of the methods of "
            f"{gateway} at {declared}; every call of its tools is denied; add {missing}"
        )


def _doubts_of_hosts(
    gateway: str, operations: Sequence[HttpOperation], policy: Policy, declared: str, allowed: str
) -> Iterator[str]:
    """Yield the hosts of a gateway that may not be called; an unusable base URL has its own warning."""
    denied = Counter(
        (operation.destination.authority, operation.is_proposed, operation.is_elsewhere)
        for operation in operations
        if operation.destination is not None and not policy.lists(operation)
    )
    for (host, is_proposed, is_elsewhere), count in sorted(denied.items()):
        if not is_proposed:
            yield (
                f"{allowed}: policy.allowed_domains excludes the host of "
                f"{gateway}.base_url at {declared}; every call of its tools is denied; add the host"
            )
        elif policy.limits.allowed_domains is None:
            why = "it has for single operations only" if is_elsewhere else "is not public https"
            yield (
                f"{declared}: the document of {gateway} names the server {host}, which {why}; calls of its "
                f"{count} tools are denied; set base_url, or list it in allowed_domains"
            )
        else:
            yield (
                f"{allowed}: policy.allowed_domains excludes {host}, which the "
                f"document of {gateway} at {declared} names; calls of its {count} tools are denied; add it"
            )


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
