"""`PreparedTool`: what is the same for every call of a tool under the rules in force. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable

from portbook.audit.basis import Bases
from portbook.audit.record_form import RecordForms
from portbook.model import NOBODY, JSONObject, Run, Start, read_only
from portbook.policy import Action, Decision, Policy, ToolPolicy
from portbook.policy.decision_by_limits_and_rules import timeout_ms_of
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, Switch

__all__ = ["PreparedTool"]


@read_only
class PreparedTool:
    """One row of the table that the pipeline runs on; made with the first call of its tool."""

    tool: Tool
    start: Start
    """Runs the tool."""
    policy: ToolPolicy
    """The part of the policy that applies to the tool."""
    decision: Decision | None
    """The decision on every call; None where it depends on the call."""
    timeout_ms: int
    has_intent: bool
    """Whether an intent is written before the tool runs."""
    switch: Switch | None
    """Tells whether the tool is served at the moment, where that can change."""
    run: Run | None
    """What an executor gets about every call of a function that takes no `Context`; else each has its own."""
    is_settled: bool
    """Whether every call is allowed whose arguments are: no rate is counted, no arguments are recorded."""
    accepts: Callable[[JSONObject], bool]
    """Returns whether the input schema allows the arguments."""
    forms: RecordForms | None
    """The forms of its records; None where decisions differ, which are part of them."""
    bases: Bases
    """What decides on its calls, for their records."""

    @classmethod
    def of(
        cls,
        tool: Tool,
        policy: Policy,
        default_ms: int,
        start: Start,
        *,
        is_watched: bool = False,
        has_more: bool = False,
    ) -> PreparedTool:
        """Return the row of `tool` under `policy`; `default_ms` is the deadline without one of its own.

        Calls are `is_watched` where they are counted, or their arguments recorded. A record `has_more` than
        its form where it has arguments or digests.
        """
        spec, own = tool.spec, ToolPolicy.of(policy, tool.spec)
        timeout_ms = timeout_ms_of(spec.timeout_ms, default_ms, policy.limits)
        is_plain = spec.operation is None and spec.upstream is None and not spec.takes_context
        return cls(
            tool,
            start,
            own,
            own.constant,
            timeout_ms,
            spec.effect is not Effect.READ,
            spec.switch,
            Run(timeout_ms, NOBODY) if is_plain else None,
            own.constant is not None and own.constant.action is Action.ALLOW and not is_watched,
            tool.input.accepts,
            None if own.constant is None else RecordForms(has_more=has_more),
            Bases(tool, policy),
        )
