"""What governs calls: whose they are, what policy says of them, what must not be seen. Replaced whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from portbook.access.callers import Callers
from portbook.access.rates import Rates
from portbook.envelope.call_envelope import CallEnvelopes
from portbook.policy import Policy
from portbook.redaction import Redactor

__all__ = ["Rules"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force. A reload makes a new one; a call keeps the one that it began with."""

    policy: Policy = field(default_factory=Policy)
    callers: Callers = field(default_factory=Callers)
    rates: Rates = field(default_factory=lambda: Rates(None))
    redactor: Redactor | None = None
    """Takes secrets out; None where redaction is switched off."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The values that it was told are secret when it was made."""
    enclosing: CallEnvelopes = field(default_factory=CallEnvelopes)
    """Puts results into envelopes, where somebody asks for that."""
    on_audit_failure: Literal["refuse", "warn"] = "refuse"
    records_arguments: bool = False
    """Whether execution records hold the arguments, redacted."""
    timeout_ms: int = 30_000
    """The deadline of a tool that has none of its own."""
