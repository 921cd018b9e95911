"""A policy from what the operator wrote: every mistake is found before anything is served. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from portbook.canonical import NotJSON, fingerprint
from portbook.globs import problem_of
from portbook.model import JSONObject
from portbook.policy.decision_limits_rules_and_remedy import LIMIT_NAMES, Action, Limits, Policy, Rule
from portbook.schema.engine import BadSchema, validator_for
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.http_methods import METHODS
from portbook.tools.spec import Effect

if TYPE_CHECKING:
    from portbook.net.destinations import Destinations
    from portbook.policy.where_condition import Condition

__all__ = ["BadPolicy", "read_policy"]

Path: TypeAlias = tuple[str | int, ...]
Approver: TypeAlias = Literal["operator", "client"]
Place: TypeAlias = Callable[[Path], str]

_RULES: Final[Path] = ("policy", "rules")
_MEMBERS: Final = (
    "name", "action", "tools", "kinds", "effects", "tags", "callers", "sessions", "where", "approver",
)  # fmt: skip
_APPROVERS: Final = ("operator", "client")
_KINDS: Final = ("tool", "resource", "prompt")


class BadPolicy(ValueError):
    """A policy that cannot be used: which key of the file, and what to do about it."""

    def __init__(self, path: Path, sentence: str) -> None:
        super().__init__(sentence)
        self.path = path
        self.others: tuple[BadPolicy, ...] = ()
        """The further mistakes of the same policy."""


def read_policy(
    limits: Limits,
    rules: Sequence[Mapping[str, Any]],
    base_urls: Sequence[str],
    place: Place,
    *,
    own_urls: Sequence[str] = (),
    is_redacting: bool = True,
) -> Policy:
    """Return the policy; `place` returns the file and line of a key, and tools declare `base_urls`.

    Those of them that are `own_urls` count as listed, whatever the allowlists say.

    Raises `BadPolicy` for the first mistake, which has the others: an unknown key, a bad pattern, a schema
    that does not compile, a rule that can never decide.
    """
    read = _rules(rules, place, limits.approver)
    names: set[str] = set()
    for number, rule in enumerate(read):
        if rule.name in names:
            raise BadPolicy(
                (*_RULES, number, "name"), "is the name of an earlier rule; choose a different one"
            )
        names.add(rule.name)
        from portbook.policy.rules_without_effect import hidden_by  # late: a policy may have no rules

        if other := hidden_by(rule, read):
            raise BadPolicy(
                (*_RULES, number),
                f"can never decide: {other.name!r} at {other.place} always wins over it; "
                "remove one of the two, or narrow the other with a condition",
            )
    is_redaction_missing = limits.require_redaction and not is_redacting
    _require_effects(limits)
    return Policy(
        limits=limits,
        rules=read,
        destinations=_destinations(limits, base_urls, own_urls),
        methods=_methods(limits),
        is_redaction_missing=is_redaction_missing,
        places=tuple((name, place(("policy", name))) for name in LIMIT_NAMES),
        digest=_digest(limits, read, base_urls, is_redaction_missing=is_redaction_missing),
    )


# What every rule needs, in place of what is wrong, while the rest of the rule is read.
_STAND_INS: Final = {"name": "a rule", "action": Action.ASK}


def _rules(tables: Sequence[Mapping[str, Any]], place: Place, approver: Approver) -> tuple[Rule, ...]:
    read: list[Rule] = []
    mistakes: list[BadPolicy] = []
    for number, table in enumerate(tables):
        rule = _whole_rule(number, table, place, approver, mistakes)
        if rule is not None:
            read.append(rule)
    if mistakes:
        first, *others = mistakes
        first.others = tuple(others)
        raise first
    return tuple(read)


def _whole_rule(
    number: int, table: Mapping[str, Any], place: Place, approver: Approver, mistakes: list[BadPolicy]
) -> Rule | None:
    """Return the rule of a table; None where it has mistakes, all of which are added to `mistakes`."""
    left: dict[str, Any] = dict(table)
    before = len(mistakes)
    while True:
        try:
            rule = _rule(number, left, place, approver)
        except BadPolicy as mistake:
            mistakes.append(mistake)
            key = str(mistake.path[len(_RULES) + 1])
            left.pop(key, None)
            left |= {key: _STAND_INS[key]} if key in _STAND_INS else {}
        else:
            return rule if len(mistakes) == before else None


def _digest(
    limits: Limits, rules: tuple[Rule, ...], base_urls: Sequence[str], *, is_redaction_missing: bool
) -> str:
    written = {name: getattr(limits, name) for name in LIMIT_NAMES}
    # No decision depends on whether redaction is required, only on whether it is missing.
    del written["require_redaction"]
    written["is_redaction_missing"] = is_redaction_missing
    if limits.effects is None:  # so that a policy without it keeps the digest that approvals are bound to
        del written["effects"]
    return fingerprint(
        {"limits": written, "rules": [rule.as_data() for rule in rules], "base_urls": list(base_urls)}
    )


def _destinations(limits: Limits, base_urls: Sequence[str], own_urls: Sequence[str]) -> Destinations | None:
    """Return where tools may go; None where no tool goes anywhere and nothing is listed."""
    if not base_urls and not limits.allowed_networks and limits.allowed_domains is None:
        return None
    from portbook.net.destinations import BadDestination, Destinations  # late: only for HTTP tools

    for number, network in enumerate(limits.allowed_networks):
        try:
            Destinations(networks=[network])
        except BadDestination as error:
            raise BadPolicy(("policy", "allowed_networks", number), f"cannot be used: {error}") from None
    if limits.allowed_domains is None:
        return Destinations.of_base_urls(base_urls, limits.allowed_networks, own_urls)
    for number, entry in enumerate(limits.allowed_domains):
        try:
            Destinations([entry])
        except BadDestination as error:
            raise BadPolicy(("policy", "allowed_domains", number), f"cannot be used: {error}") from None
    return Destinations(limits.allowed_domains, limits.allowed_networks, own_urls)


def _methods(limits: Limits) -> frozenset[str] | None:
    if limits.allowed_methods is None:
        return None
    methods = [method.upper() for method in limits.allowed_methods]
    for number, method in enumerate(methods):
        if method not in METHODS:
            raise BadPolicy(
                ("policy", "allowed_methods", number),
                f"is not a method that is called{_near(method, METHODS)}",
            )
    return frozenset(methods)


def _require_effects(limits: Limits) -> None:
    for number, effect in enumerate(limits.effects or ()):
        if effect not in tuple(Effect):
            near = _near(effect, tuple(Effect))
            raise BadPolicy(("policy", "effects", number), f"is not an effect{near}")


def _rule(number: int, table: Mapping[str, Any], place: Place, approver: Approver) -> Rule:
    here: Path = (*_RULES, number)
    for key in table:
        if key not in _MEMBERS:
            raise BadPolicy((*here, key), f"is not part of a rule{_near(key, _MEMBERS)}")
    name, action = table.get("name"), table.get("action")
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise BadPolicy((*here, "name"), "must be a name of 1 to 200 characters; decisions name it")
    if action not in tuple(Action):
        raise BadPolicy((*here, "action"), _one_of_words(action, tuple(Action)))
    return Rule(
        name=name,
        action=Action(action),
        place=place(here),
        tools=_patterns(here, table, "tools", problem_of),
        kinds=_patterns(here, table, "kinds", lambda value: _one_of(value, _KINDS)),
        effects=_patterns(here, table, "effects", lambda value: _one_of(value, tuple(Effect))),
        tags=_patterns(here, table, "tags", _any_text),
        callers=_patterns(here, table, "callers", _any_text),
        sessions=_patterns(here, table, "sessions", _any_text),
        where=_where((*here, "where"), table.get("where", {})),
        approver=_approver(here, table, action, approver),
    )


def _approver(here: Path, table: Mapping[str, Any], action: Any, default: Approver) -> Approver:
    given = table.get("approver", default)
    if given not in _APPROVERS:
        raise BadPolicy((*here, "approver"), _one_of_words(given, _APPROVERS))
    if "approver" in table and action != Action.ASK:
        raise BadPolicy((*here, "approver"), "is only for rules that ask; remove it, or set action to ask")
    return given


def _patterns(
    here: Path, table: Mapping[str, Any], key: str, problem_with: Callable[[str], str | None]
) -> tuple[str, ...]:
    given = table.get(key, ["*"])
    values = cast("list[Any]", given) if isinstance(given, list) else []
    if not values or not all(isinstance(value, str) for value in values):
        raise BadPolicy((*here, key), "must be a list of at least one pattern")
    for number, value in enumerate(values):
        if problem := problem_with(value):
            raise BadPolicy((*here, key, number), f"is a bad pattern, {value[:80]!r}: {problem}")
    return tuple(values)


def _one_of(value: str, known: Sequence[str]) -> str | None:
    return None if value in (*known, "*") else did_you_mean(value, known, f"use {', '.join(known)}")


def _any_text(value: str) -> str | None:
    return None if 0 < len(value) <= 256 else "use 1 to 256 characters"


def _where(here: Path, given: Any) -> tuple[Condition, ...]:
    if not isinstance(given, dict):
        raise BadPolicy(here, 'must be a table of JSON Pointers: { "/amount" = { maximum = 1000 } }')
    return tuple(
        _condition((*here, pointer), pointer, schema) for pointer, schema in cast("JSONObject", given).items()
    )


def _condition(here: Path, pointer: str, schema: Any) -> Condition:
    from portbook.policy.where_condition import (  # late: few rules have a condition
        KEYWORDS,
        Condition,
        UntoldTypes,
        spoken_types,
        unknown_keyword,
    )

    if pointer and not pointer.startswith("/"):
        raise BadPolicy(here, f"is not a JSON Pointer; write {'/' + pointer[:80]!r}")
    if not isinstance(schema, dict | bool):
        raise BadPolicy(here, "must be a JSON Schema, such as { maximum = 1000 }")
    if "*" in pointer.split("/"):
        raise BadPolicy(
            here, "must name one place; * is not a wildcard here, use contains or items in the schema"
        )
    schema = cast("JSONObject | bool", schema)
    if keyword := unknown_keyword(schema):
        hint = did_you_mean(keyword, sorted(KEYWORDS), "remove it")
        raise BadPolicy(here, f"has {keyword[:40]!r}, which is not a keyword of JSON Schema; {hint}")
    try:
        validator = validator_for(schema)
    except (BadSchema, NotJSON) as error:
        raise BadPolicy(here, f"is not a usable JSON Schema: {error}") from None
    try:
        types = spoken_types(schema)
    except UntoldTypes as error:
        raise BadPolicy(here, f"may match more than it says: {error}") from None
    segments = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    return Condition(pointer, segments, schema, validator, types)


def _one_of_words(given: Any, known: Sequence[str]) -> str:
    hint = did_you_mean(given, known) if isinstance(given, str) else ""
    return f"must be one of {', '.join(known)}" + (f"; {hint}" if hint else "")


def _near(name: str, known: Sequence[str]) -> str:
    hint = did_you_mean(name, known, f"use {', '.join(known)}")
    return f"; {hint}"
