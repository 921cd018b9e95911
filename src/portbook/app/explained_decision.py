"""How policy decides a call that is not made: what `portbook explain` says, also over HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from portbook.errors import Reason
from portbook.globs import matches
from portbook.model import JSON, JSONObject
from portbook.policy import Action, Decision, Policy, PolicyInput, decide
from portbook.settings import Settings
from portbook.stores.caller_keys import ANONYMOUS, AllowedKey
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.catalog import Tool
from portbook.wire.violations import violations_of

__all__ = ["PlacedKey", "decide_call", "doubt_about", "explanation", "placed_keys"]


class PlacedKey(NamedTuple):
    """A key of a caller, and where it is given."""

    key: AllowedKey
    place: str


def placed_keys(settings: Settings, stored: Iterable[AllowedKey], place: str) -> tuple[PlacedKey, ...]:
    """Return the keys of the settings and of the store, each with its place."""
    given = [
        PlacedKey(key, settings.place_of("keys", "allow", number))
        for number, key in enumerate(settings.allowed_keys)
    ]
    return (*given, *(PlacedKey(key, place) for key in stored))


def doubt_about(caller: str, keys: Iterable[PlacedKey]) -> str | None:
    """Return a warning about a caller that no key names, or None; without keys, it is for a later one."""
    names = sorted({placed.key.name for placed in keys})
    if not names or caller == ANONYMOUS.name or caller in names:
        return None
    hint = did_you_mean(caller, names, "`portbook keys create` makes one")
    return f"no key has the caller {caller!r}; {hint}"


def decide_call(
    policy: Policy,
    keys: Sequence[PlacedKey],
    tool: Tool,
    arguments: JSONObject,
    *,
    caller: str = ANONYMOUS.name,
    attempt: int = 1,
    session: str | None = None,
) -> Decision:
    """Return what policy decides on a call; a tool that the caller's key does not open is denied.

    Raises `NotJSON` for arguments that JSON cannot hold.
    """
    own = [placed for placed in keys if placed.key.name == caller]
    if own and not any(matches(placed.key.tools, tool.spec.name) for placed in own):
        return Decision(
            Action.DENY,
            "the key's tools",
            own[0].place,
            "add the tool to those of the key; to its caller the tool does not exist",
            Reason.UNKNOWN_TOOL,
        )
    subject = PolicyInput.of(tool.spec, arguments, caller=caller, attempt=attempt, session=session)
    return decide(policy, subject)


def explanation(tool: Tool, decision: Decision, arguments: JSONObject) -> JSONObject:
    """Return a decision as JSON: by which rule, where that stands, and what would change it."""
    findings = () if tool.input.allows(arguments) else tool.input.findings(arguments)
    violations: list[JSON] = [{**each} for each in violations_of(findings)]
    return {
        "tool": tool.spec.identifier,
        "effect": tool.spec.effect.value,
        "decision": decision.action.value,
        "rule": decision.rule,
        "place": decision.place,
        "reason": None if decision.reason is None else decision.reason.value,
        "remedy": decision.remedy,
        "violations": violations,
    }
