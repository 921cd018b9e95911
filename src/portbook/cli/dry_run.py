"""Decisions on calls that are not made: what `portbook explain` and `portbook policy` begin with."""

from __future__ import annotations

from typing import NamedTuple

from portbook.access.callers import ANONYMOUS
from portbook.apis.left_out import LeftOutOperation
from portbook.app.policy_doubts import policy_doubts
from portbook.app.rules_from_settings import policy_of
from portbook.app.tools_from_settings import collect_tools
from portbook.model import JSONObject
from portbook.policy import Decision, Policy, PolicyInput, decide
from portbook.settings import Settings
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

    def decide(
        self,
        tool: Tool,
        arguments: JSONObject,
        *,
        caller: str = ANONYMOUS.name,
        attempt: int = 1,
        session: str | None = None,
    ) -> Decision:
        """Return what policy decides on a call.

        Raises `NotJSON` for arguments that JSON cannot hold.
        """
        subject = PolicyInput.of(tool.spec, arguments, caller=caller, attempt=attempt, session=session)
        return decide(self.policy, subject)


def dry_run(settings: Settings) -> DryRun:
    """Return the tools and the policy that `settings` describe.

    Raises one of `START_ERRORS` or `OSError` for what cannot be used.
    """
    collected = collect_tools(settings)
    specs = list(collected.catalog.specs())
    policy = policy_of(settings, specs)
    warnings = (*collected.warnings, *policy_doubts(settings, policy, specs))
    return DryRun(collected.catalog, policy, warnings, collected.left_out)
