"""The rules in force: policy, callers, rates, redaction. Replaced as a whole."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from portbook.access.callers import Callers
from portbook.access.rate_limit import RateLimit, Rates
from portbook.envelope.call_envelope import CallEnvelopes
from portbook.model import Kind, Start
from portbook.policy import Policy
from portbook.redaction import Redactor
from portbook.stages.prepared_tool import PreparedTool
from portbook.tools.catalog import Tool

if TYPE_CHECKING:
    from portbook.audit.keyed_digests import AuditKey
    from portbook.settings import Settings

__all__ = ["InForce", "Rules"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
