"""How policy decides a call that is not made, and the tools and the policy of settings without a server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from portbook.apis.left_out_operations import LeftOutOperation
from portbook.app.rules_from_settings import rules_of
from portbook.app.start_warnings import policy_doubts, unknown_servers
from portbook.app.store_from_settings import store_of
from portbook.app.usable_settings import usable_settings
from portbook.clock import SystemClock
from portbook.errors import Reason
from portbook.globs import matches
from portbook.model import JSON, JSONObject
from portbook.policy import Action, Decision, Policy, PolicyInput, decide
from portbook.settings import Settings
from portbook.stores.caller_keys import ANONYMOUS, AllowedKey, Keys
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.catalog import Catalog, Tool
from portbook.wire.violations import violations_of

__all__ = ["DryRun", "PlacedKey", "decide_call", "doubt_about", "dry_run", "explanation", "placed_keys"]


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


# The tools and the policy of settings, without a server: what `tools`, `explain` and `policy` begin with.


class DryRun(NamedTuple):
    """The tools and the policy of some settings, without anything that could run a call."""

    catalog: Catalog
    policy: Policy
    warnings: tuple[str, ...] = ()
    """Likely mistakes in the policy, and what is not served."""
    left_out: tuple[LeftOutOperation, ...] = ()
    """The operations of HTTP APIs that are not served."""
    keys: tuple[PlacedKey, ...] = ()
    """The keys of callers, each with its place."""

    def names(self) -> list[str]:
        """Return the names of the tools."""
        return [tool.spec.name for tool in self.catalog.of("tool")]

    def doubt_about(self, caller: str) -> str | None:
        """Return a warning about a caller that no key names, or None."""
        return doubt_about(caller, self.keys)

    def decide(
        self,
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
        return decide_call(
            self.policy, self.keys, tool, arguments, caller=caller, attempt=attempt, session=session
        )


def dry_run(settings: Settings) -> DryRun:
    """Return the tools and the policy that `settings` describe.

    Raises one of `START_ERRORS` or `OSError` for what cannot be used.
    """
    collected = usable_settings(settings, os.environ, is_exposed=False).collected
    warnings = list(collected.warnings)
    if collected.servers:
        # Starts processes: only where there are any.
        from portbook.app.servers_asked_once import observe_servers
        from portbook.app.servers_from_settings import dry_trust_of

        warnings += observe_servers(collected, dry_trust_of(settings))
    specs = list(collected.catalog.specs())
    policy = rules_of(settings, specs, os.environ, is_exposed=False).policy
    warnings += policy_doubts(settings, policy, specs, unknown_servers(settings, collected.catalog, specs))
    return DryRun(collected.catalog, policy, tuple(warnings), collected.left_out, _keys(settings))


def _keys(settings: Settings) -> tuple[PlacedKey, ...]:
    """Return the keys of the settings and of the store; a store that does not exist is not created.

    Raises `StoreError` where the store cannot be read.
    """
    store = store_of(settings)
    try:
        return placed_keys(settings, Keys(store, SystemClock()).allowed(), store.place)
    finally:
        store.close()
