"""The rules in force: policy, callers, rates, redaction. Replaced as a whole. Pure: no I/O.

`PreparedTool` is what is the same for every call of a tool under these rules: its decision where no call can
change it, its deadline, whether an intent is written before it runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from portbook.access.rate_limit import RateLimit, Rates
from portbook.audit.decision_digests import Bases
from portbook.audit.record_views_and_fields import RecordForms
from portbook.envelope.call_envelope import CallEnvelopes
from portbook.model import NOBODY, JSONObject, Kind, Run, Start
from portbook.policy import Action, Decision, Policy, ToolPolicy
from portbook.policy.decision_limits_rules_and_remedy import timeout_ms_of
from portbook.redaction import Redactor
from portbook.stores.caller_keys import Callers
from portbook.text.slotted import slotted
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, Switch

if TYPE_CHECKING:
    from portbook.audit.keyed_digests import AuditKey
    from portbook.settings import Settings

__all__ = ["InForce", "PreparedTool", "Rules"]


@slotted
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


@slotted(eq=False)
class Rules:
    """The rules in force. A reload makes new ones; a call keeps the rules that it began with."""

    policy: Policy = field(default_factory=Policy)
    callers: Callers = field(default_factory=Callers)
    rates: RateLimit = field(default_factory=lambda: Rates(None))
    redactor: Redactor | None = None
    """Redacts secrets; None if redaction is switched off."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The secret values that the redactor was made with."""
    enclosing: CallEnvelopes = field(default_factory=CallEnvelopes)
    """Puts results into envelopes, if the caller or the operator asks for that."""
    on_audit_failure: Literal["refuse", "warn"] = "refuse"
    records_arguments: bool = False
    """Whether execution records hold the redacted arguments."""
    audit_key: AuditKey | None = None
    """Makes digests of arguments, results and claims for the records; None where they have none."""
    timeout_ms: int = 30_000
    """The deadline of a tool that does not set its own."""
    settings: Settings | None = None
    """What they were read from; None for rules that were put together by hand."""
    prepared: defaultdict[Kind, dict[str, PreparedTool]] = field(
        default_factory=lambda: defaultdict[Kind, dict[str, PreparedTool]](dict), init=False
    )
    """The rows of what has been called under these rules, by kind and name: new rules begin without any."""

    def prepare(self, tool: Tool, start: Start) -> PreparedTool:
        """Return the row of a tool, made now; `start` runs it."""
        is_watched = self.rates.per_minute is not None or self.records_arguments
        has_more = self.records_arguments or self.audit_key is not None
        row = PreparedTool.of(
            tool, self.policy, self.timeout_ms, start, is_watched=is_watched, has_more=has_more
        )
        self.prepared[tool.spec.kind][tool.spec.name] = row
        return row


class InForce:
    """Holds the rules in force: a reload, or a token that was fetched, replaces them at any time."""

    __slots__ = ("rules",)

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
