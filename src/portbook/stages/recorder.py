"""Writes the record of every call, and refuses calls while records cannot be written.

Pure but for the sink and the clock that it is given. A result that cannot be recorded is not returned; a call
with effects does not begin before its intent is written. With `on_failure = "warn"` it only warns.
"""

from __future__ import annotations

from collections.abc import Callable

from portbook.audit.records import envelope_view, execution_view, intent_view, without_secrets
from portbook.clock import Clock
from portbook.model import Call, Outcome
from portbook.stages.audit_failure import AuditFailure
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
        self._failure = AuditFailure(warn)

    @property
    def is_recording(self) -> bool:
        """Return whether the last record could be written."""
        return not self._failure.is_lasting

    def require(self, rules: Rules) -> None:
        """Allow a call to begin.

        Raises `Refused` while records cannot be written, unless the operator chose to continue without.
        """
        try:
            if not self._failure.is_lasting:
                self._sink.look()
                return
        except OSError as error:
            lost: OSError | None = error
        else:
            lost = None
        try:
            self._sink.mend()
        except OSError as error:
            self._failure.before_a_call(error, rules)
        else:
            if lost is not None:
                self._warn(f"records are written to a new file: {lost}")

    def intend(self, state: CallState) -> None:
        """Write the intent of a call with effects, before it runs.

        Raises `Refused` if it cannot be written, unless the operator chose to continue without.
        """
        noted = _without_secrets(state)
        arguments = state.shown() if state.rules.records_arguments else None
        intent = intent_view(noted, state.identity, state, ts=self._clock.now(), arguments=arguments)
        try:
            self._sink.intend(intent)
        except Exception as error:  # noqa: BLE001 - a call whose intent cannot be written does not run
            self._failure.before_a_call(error, state.rules)

    def record(self, state: CallState, outcome: Outcome, duration_ms: float) -> Outcome:
        """Write the record of a call; return the outcome to answer with."""
        rules, identity = state.rules, state.identity
        ts, call = self._clock.now(), _without_secrets(state)
        envelope = envelope_view(
            call,
            outcome,
            identity,
            ts=ts,
            duration_ms=duration_ms,
            deterministic=self._deterministic,
            is_unchecked=state.tool is not None and state.tool.spec.is_result_unchecked,
        )
        arguments = state.shown() if rules.records_arguments and state.tool is not None else None
        execution = execution_view(
            call, outcome, identity, state, ts=ts, latency_ms=duration_ms, arguments=arguments
        )
        try:
            self._sink.write(envelope, execution)
        except Exception as error:  # noqa: BLE001 - a record that cannot be written is a failure like any
            return self._failure.after_a_call(error, outcome, rules)
        self._failure.is_lasting = False
        return outcome


def _without_secrets(state: CallState) -> Call:
    redactor = state.redactor
    return state.call if redactor is None else without_secrets(state.call, state, redactor)
