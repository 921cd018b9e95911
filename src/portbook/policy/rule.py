"""One rule of a policy: which calls it matches, and what happens to them. Pure: no I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from portbook.canonical import canonical_bytes
from portbook.globs import covers, matches
from portbook.model import JSONObject
from portbook.policy.arguments import Gap, find
from portbook.policy.types import types_of
from portbook.schema.engine import Validator
from portbook.text.named_tuple import NamedTuple

__all__ = ["Action", "Condition", "Rule", "hidden_by"]

# A rule's condition on one argument: a JSON Pointer, and a JSON Schema for its value.


class Condition(NamedTuple):
    """What the value at one place in the arguments must be."""

    pointer: str
    segments: tuple[str, ...]
    schema: JSONObject | bool
    validator: Validator
    types: frozenset[str] | None
    """The JSON types that the schema constrains; None for all of them."""

    def holds(self, arguments: JSONObject, input_schema: JSONObject, *, is_cautious: bool) -> bool:
        """Return whether the condition is met; `is_cautious` for rules that stop calls.

        1. Without a value, the default in the tool's schema is what the tool will see.
        2. If the tool may fill in a default that its schema does not name, a cautious condition is met. If
           the tool has no such place, or requires a value there, the condition is not met.
        3. A value of a type that the condition does not constrain meets a cautious condition: it stops a
           call, and never allows one.
        4. Otherwise the schema decides.
        """
        value = find(arguments, input_schema, self.segments)
        if isinstance(value, Gap):
            return is_cautious and value is Gap.UNTOLD
        if self.types is not None and not types_of(value) & self.types:
            return is_cautious
        # A string is JSON in any case; a number of a default may be none.
        return self.validator.allows(value) if isinstance(value, str) else self.validator.is_valid(value)


class Action(StrEnum):
    """What happens to a call; of several matching rules, the first of these actions wins."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


_ORDER: Final = list(Action)
_EVERYTHING: Final = ("*",)


class Rule(NamedTuple):
    """A rule. Each of its lists must match; an empty `where` matches every call."""

    name: str
    action: Action
    place: str
    """The file and line of the rule."""
    tools: tuple[str, ...] = _EVERYTHING
    kinds: tuple[str, ...] = _EVERYTHING
    effects: tuple[str, ...] = _EVERYTHING
    tags: tuple[str, ...] = _EVERYTHING
    """Patterns of tags, one of which a tag of the tool must match; `*` alone also for tools without tags."""
    callers: tuple[str, ...] = _EVERYTHING
    sessions: tuple[str, ...] = _EVERYTHING
    where: tuple[Condition, ...] = ()
    approver: Literal["operator", "client"] = "operator"
    """Who may approve the call, if the rule asks."""

    def is_about(self, kind: str, name: str, effect: str, tags: tuple[str, ...]) -> bool:
        """Return whether this rule can ever match a call of that tool, resource or prompt."""
        return (
            matches(self.tools, name)
            and matches(self.kinds, kind)
            and matches(self.effects, effect)
            and (not self.selects_tags or any(matches(self.tags, tag) for tag in tags))
        )

    @property
    def selects_tags(self) -> bool:
        """Return whether it depends on the tags of a tool which rules match it."""
        return "*" not in self.tags

    def matches(self, caller: str, session: str, arguments: JSONObject, input_schema: JSONObject) -> bool:
        """Return whether the rule matches a call of a tool that it is about."""
        is_cautious = self.action is not Action.ALLOW
        return (
            matches(self.callers, caller)
            and matches(self.sessions, session)
            and all(each.holds(arguments, input_schema, is_cautious=is_cautious) for each in self.where)
        )

    def as_data(self) -> JSONObject:
        """Return the rule without its place, for the digest of the policy."""
        return {
            "name": self.name,
            "action": self.action.value,
            "tools": list(self.tools),
            "kinds": list(self.kinds),
            "effects": list(self.effects),
            # Only where they matter, so that other policies keep the digest that approvals are bound to.
            **({"tags": list(self.tags)} if self.selects_tags else {}),
            "callers": list(self.callers),
            "sessions": list(self.sessions),
            "where": {each.pointer: each.schema for each in self.where},
            "approver": self.approver,
        }


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
