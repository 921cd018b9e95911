"""One rule of a policy: which calls it matches, and what happens to them. Pure: no I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from portbook.globs import matches
from portbook.model import JSONObject
from portbook.policy.where_condition import Condition
from portbook.text.named_tuple import NamedTuple

__all__ = ["Action", "Rule"]


class Action(StrEnum):
    """What happens to a call; of several matching rules, the first of these actions wins."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


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
