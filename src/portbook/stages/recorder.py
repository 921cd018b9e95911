"""Writes the record of every call, and refuses calls while records cannot be written.

Pure but for the sink and the clock that it is given. A result that cannot be recorded is not returned; a call
with effects does not begin before its intent is written. With `on_failure = "warn"` it only warns.
"""

from __future__ import annotations

from collections.abc import Callable

from portbook.audit.records import envelope_view, execution_view, intent_view, without_secrets
from portbook.clock import Clock
from portbook.errors import Failed, Reason, Refused
from portbook.faults import place_of
from portbook.model import Call, Outcome
from portbook.stages.ports import Sink
from portbook.stages.rules import Rules
from portbook.stages.state import CallState

__all__ = ["Recorder"]


class Recorder:
    """Writes to one sink, and knows whether the sink works."""

    def __init__(self, sink: Sink, clock: Clock, warn: Callable[[str], None], *, deterministic: bool) -> None:
        self._sink = sink
        self._clock = clock
        self._warn = warn
        self._deterministic = deterministic
        self.is_recording = True
        """Whether the last record could be written."""

    def require(self, rules: Rules) -> None:
        """Allow a call to begin.

        Raises `Refused` while records cannot be written, unless the operator chose to continue without.
        """
        try:
            if self.is_recording:
                self._sink.look()
                return
        except OSError as error:
            lost: OSError | None = error
        else:
            lost = None
        try:
            self._sink.mend()
        except OSError as error:
            self._note_failure(error, rules)
            if rules.on_audit_failure == "refuse":
                raise _not_recorded(error) from None
        else:
            if lost is not None:
                self._warn(f"records are written to a new file: {lost}")

    def intend(self, state: CallState) -> None:
        """Write the intent of a call with effects, before it runs.

        Raises `Refused` if it cannot be written, unless the operator chose to continue without.
        """
        noted = _without_secrets(state)
        intent = intent_view(noted, state.identity, state, ts=self._clock.now())
        if state.rules.records_arguments:
            intent["arguments"] = state.shown()
        try:
            self._sink.intend(intent)
        except Exception as error:  # noqa: BLE001 - a call whose intent cannot be written does not run
            self._note_failure(error, state.rules)
            if state.rules.on_audit_failure == "refuse":
                raise _not_recorded(error) from None

    def record(self, state: CallState, outcome: Outcome, duration_ms: float) -> Outcome:
        """Write the record of a call; return the outcome to answer with."""
        rules, identity = state.rules, state.identity
        ts, call = self._clock.now(), _without_secrets(state)
        envelope = envelope_view(
            call, outcome, identity, ts=ts, duration_ms=duration_ms, deterministic=self._deterministic
        )
        execution = execution_view(call, outcome, identity, state, ts=ts, latency_ms=duration_ms)
        if rules.records_arguments and state.tool is not None:
            execution["arguments"] = state.shown()
        try:
            self._sink.write(envelope, execution)
        except Exception as error:  # noqa: BLE001 - a record that cannot be written is a failure like any
            self._note_failure(error, rules)
            if isinstance(outcome, Refused) or rules.on_audit_failure == "warn":
                return outcome  # nothing ran; or the operator chose to continue without records
            return Failed(Reason.NOT_RECORDED, note=place_of(error))  # no result without its record
        self.is_recording = True
        return outcome

    def _note_failure(self, error: Exception, rules: Rules) -> None:
        if self.is_recording:
            refuses = rules.on_audit_failure == "refuse"
            consequence = "calls are refused until they can" if refuses else "calls continue"
            self._warn(f"records cannot be written, {consequence}: {error}")
        self.is_recording = False


def _not_recorded(error: Exception) -> Refused:
    return Refused(Reason.NOT_RECORDED, note=place_of(error), is_retryable=True)  # nothing ran


def _without_secrets(state: CallState) -> Call:
    redactor = state.redactor
    return state.call if redactor is None else without_secrets(state.call, state, redactor)
