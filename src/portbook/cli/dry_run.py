"""Decisions on calls that are not made: what `portbook explain` and `portbook policy` begin with."""

from __future__ import annotations

import os
from typing import NamedTuple

from portbook.access.callers import ANONYMOUS, AllowedKey
from portbook.apis.left_out import LeftOutOperation
from portbook.app.policy_doubts import policy_doubts
from portbook.app.rules_from_settings import rules_of
from portbook.app.usable_settings import usable_settings
from portbook.clock import SystemClock
from portbook.errors import Reason
from portbook.globs import matches
from portbook.model import JSONObject
from portbook.policy import Action, Decision, Policy, PolicyInput, decide
from portbook.settings import Settings
from portbook.stores.keys import Keys
from portbook.stores.sqlite import Store
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.catalog import Catalog, Tool

__all__ = ["DryRun", "dry_run"]


class PlacedKey(NamedTuple):
    """A key of a caller, and where it is given."""

    key: AllowedKey
    place: str


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
        """Return a warning about a caller that no key names, or None; without keys, it is for a later one."""
        names = sorted({placed.key.name for placed in self.keys})
        if not names or caller == ANONYMOUS.name or caller in names:
            return None
        hint = did_you_mean(caller, names, "`portbook keys create` makes one")
        return f"no key has the caller {caller!r}; {hint}"

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
        own = [placed for placed in self.keys if placed.key.name == caller]
        if own and not any(matches(placed.key.tools, tool.spec.name) for placed in own):
            return Decision(
                Action.DENY,
                "the key's tools",
                own[0].place,
                "add the tool to those of the key; to its caller the tool does not exist",
                Reason.UNKNOWN_TOOL,
            )
        subject = PolicyInput.of(tool.spec, arguments, caller=caller, attempt=attempt, session=session)
        return decide(self.policy, subject)


def dry_run(settings: Settings) -> DryRun:
    """Return the tools and the policy that `settings` describe.

    Raises one of `START_ERRORS` or `OSError` for what cannot be used.
    """
    collected = usable_settings(settings, os.environ, is_exposed=False).collected
    warnings = list(collected.warnings)
    if collected.servers:
        # Starts processes: only where there are any.
        from portbook.app.observed_servers import observe_servers
        from portbook.app.pins_from_settings import dry_trust_of

        warnings += observe_servers(collected, dry_trust_of(settings))
    specs = list(collected.catalog.specs())
    policy = rules_of(settings, specs, os.environ, is_exposed=False).policy
    warnings += policy_doubts(settings, policy, specs)
    return DryRun(collected.catalog, policy, tuple(warnings), collected.left_out, _keys(settings))


def _keys(settings: Settings) -> tuple[PlacedKey, ...]:
    """Return the keys of the settings and of the store; a store that does not exist is not created.

    Raises `StoreError` where the store cannot be read.
    """
    found = [
        PlacedKey(key, settings.place_of("keys", "allow", number))
        for number, key in enumerate(settings.allowed_keys)
    ]
    if not settings.store_path.is_file():
        return tuple(found)
    store = Store(settings.store_path)
    try:
        found += [PlacedKey(key, str(settings.store_path)) for key in Keys(store, SystemClock()).allowed()]
    finally:
        store.close()
    return tuple(found)
