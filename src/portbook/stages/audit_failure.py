"""While records cannot be written: calls are refused, or continue with a warning. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable

from portbook.errors import Failed, Reason, Refused
from portbook.exception_place import place_of
from portbook.model import Outcome
from portbook.stages.rules_in_force import Rules

__all__ = ["AuditFailure"]


class AuditFailure:
    """Applies the setting `audit.on_failure`, and warns once for each time that records stop."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.is_lasting = False
        """Whether the last record could not be written."""

    def before_a_call(self, error: Exception, rules: Rules) -> None:
        """Warn. Raises `Refused`, unless the operator chose to continue without records."""
        self._note(error, rules)
        if rules.on_audit_failure == "refuse":
            raise Refused(Reason.NOT_RECORDED, note=place_of(error), is_retryable=True) from None

    def after_a_call(self, error: Exception, outcome: Outcome, rules: Rules) -> Outcome:
        """Warn; return the outcome to answer with: no result without its record."""
        self._note(error, rules)
        if isinstance(outcome, Refused) or rules.on_audit_failure == "warn":
            return outcome  # nothing ran; or the operator chose to continue without records
        return Failed(Reason.NOT_RECORDED, note=place_of(error))

    def _note(self, error: Exception, rules: Rules) -> None:
        if not self.is_lasting:
            refuses = rules.on_audit_failure == "refuse"
            consequence = "calls are refused until they can" if refuses else "calls continue"
            self._warn(f"records cannot be written, {consequence}: {error}")
        self.is_lasting = True
