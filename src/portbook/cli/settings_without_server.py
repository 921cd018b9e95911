"""The tools and the policy of settings, without a server: what `tools`, `explain` and `policy` begin with."""

from __future__ import annotations

import os
from typing import NamedTuple

from portbook.apis.left_out_operations import LeftOutOperation
from portbook.app.explained_decision import PlacedKey, decide_call, doubt_about, placed_keys
from portbook.app.rules_from_settings import rules_of
from portbook.app.start_warnings import policy_doubts, unknown_servers
from portbook.app.store_from_settings import store_of
from portbook.app.usable_settings import usable_settings
from portbook.clock import SystemClock
from portbook.model import JSONObject
from portbook.policy import Decision, Policy
from portbook.settings import Settings
from portbook.stores.caller_keys import ANONYMOUS, Keys
from portbook.tools.catalog import Catalog, Tool

__all__ = ["DryRun", "dry_run"]


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
        from portbook.app.asked_servers import observe_servers
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
