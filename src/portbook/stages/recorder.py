"""Writes the record of every call, and refuses calls while records cannot be written.

Pure but for the sink and the clock that it is given. A result that cannot be recorded is not returned; a call
with effects does not begin before its intent is written. With `on_failure = "warn"` it only warns.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from portbook.audit.basis import Bases
from portbook.audit.record_form import shown_json
from portbook.audit.records import both_views, intent_view, without_secrets
from portbook.clock import Clock
from portbook.model import NO_CONTEXT
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
        self._states: list[CallState] = []
        self._views: list[tuple[bytes, bytes]] = []
        """The records that are held, and the calls that they are of."""
        self._is_holding = False
        self.has_looked = False
        """Whether records could be written when this block began: one look serves all of its calls."""

    def __enter__(self) -> None:
        """Hold records until the end of a block: then they are written at once, before any answer."""
        self._is_holding = True

    def __exit__(self, *_: object) -> None:
        self._is_holding = False
        self.flush()

    def hold(self) -> None:
        """Hold records from now on: for a block of several callbacks, which flushes in its last."""
        self._is_holding = True

    def release(self) -> None:
        """Hold no more records. Those that are held wait for `flush`, or for the next record."""
        self._is_holding = False

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
                self.has_looked = self._is_holding
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
        redactor = state.redactor
        noted = state.call if redactor is None else without_secrets(state.call, state, redactor)
        arguments = state.shown() if state.rules.records_arguments else None
        key = state.rules.audit_key
        keyed = b"" if key is None else key.members(state.call, state.ids[0])
        ts = self._clock.now().encode()
        intent = intent_view(
            noted, state.ids, state, self._deterministic, ts=ts, arguments=arguments, keyed=keyed
        )
        try:
            self._sink.intend(intent)
        except Exception as error:  # noqa: BLE001 - a call whose intent cannot be written does not run
            self.has_looked = False
            self._failure.before_a_call(error, state.rules)

    def record(self, state: CallState, *, is_held: bool = False) -> None:
        """Write the record of a call that has ended, or hold it; `flush` may still change the outcome."""
        state.duration_us = round((self._clock.tick() - state.started) * 1_000_000)
        call, outcome, arguments = state.call, state.outcome, None
        assert outcome is not None
        key, keyed = state.rules.audit_key, b""
        if key is not None:
            keyed = key.members(call, state.ids[0], outcome)
        if state.tool is None:
            if state.operator_said is not None and call.arguments:  # what the operator decided on
                arguments = state.shown()
            if missing := state.exchange.missing_servers:
                keyed += b',"missing_servers":%b' % shown_json([*missing])
        elif state.rules.records_arguments:
            arguments = state.shown()
        if call.context is not NO_CONTEXT or state.tool is None or call.arrival.session or call.flaw:
            redactor = state.in_force.rules.redactor
            if redactor is not None:  # the sender's own strings
                call = without_secrets(call, state, redactor)
        views = both_views(
            call,
            outcome,
            state.ids,
            state,
            self._clock.now().encode(),
            state.duration_us,
            self._deterministic,
            arguments,
            keyed,
        )
        self._states.append(state)
        self._views.append(views)
        if state.bases is not None and state.bases.fresh:
            self._explain(state.bases)
        if not (is_held or self._is_holding):
            self.flush()

    def _explain(self, bases: Bases) -> None:
        """Write what new bases are made of; those that cannot be written wait for the next record.

        Nothing depends on it: a basis can be computed again from what it is made of.
        """
        with contextlib.suppress(Exception):
            while bases.fresh:
                self._sink.explain(bases.fresh[-1].as_line())
                bases.fresh.pop()

    def flush(self) -> None:
        """Write the records that are held. A call whose record cannot be written ends without a result."""
        self.has_looked = False
        if not self._states:
            return
        states, self._states, views, self._views = self._states, [], self._views, []
        try:
            failed = self._sink.write_all(views)
        except Exception as error:  # noqa: BLE001 - a record that cannot be written is a failure like any
            failed = dict.fromkeys(range(len(states)), error)
        for place, error in failed.items():
            state = states[place]
            assert state.outcome is not None
            state.outcome = self._failure.after_a_call(error, state.outcome, state.rules)
        self._failure.is_lasting = len(states) - 1 in failed
