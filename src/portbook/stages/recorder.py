"""Writes the record of every call, and refuses calls while records cannot be written.

Pure but for the sink and the clock that it is given. A result that cannot be recorded is not returned; a call
with effects does not begin before its intent is written. With `on_failure = "warn"` it only warns.

Every call has one record in two views, refused calls too. Without `ts`, `traceId`, `spanId`, `requestId`,
`durationMs`, `transport` and `route`, the envelope view is the same at every door; so is the execution view
without its times, ids and chain. Neither holds a result or the text of an exception; arguments are included
only where the operator asked for them, redacted. A caller's own strings are escaped, so that they cannot
forge a line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import floor, inf
from typing import Any, Final, cast

from portbook.audit.decision_digests import Bases
from portbook.audit.record_views_and_fields import (
    BEFORE_MEMBERS,
    NO_ROUTE,
    RecordEnd,
    RecordForm,
    RecordLines,
    record_form,
    shown_json,
    whole_views,
)
from portbook.clock import Clock
from portbook.errors import Ending, Failed, Refused
from portbook.model import NO_CONTEXT, Call, Done, IdBytes, JSONObject, Outcome
from portbook.redaction import Redactor
from portbook.stages.audit_failure import AuditFailure
from portbook.stages.ports import Sink
from portbook.stages.rules_in_force import Rules
from portbook.stages.state import CallState, Trail

__all__ = ["Recorder", "both_views", "intent_view", "record_lines", "without_secrets"]

# The records of this many seconds have the same time: reading the clock and writing it takes longer than that
# of a call whose time is known.
_MOMENT_S: Final = 0.001

# A float, by which a float is multiplied in half the steps.
_US_PER_S: Final = 1e6

# More than an answer has, and still a bound on what one call can write.
_MAX_VIOLATIONS: Final = 100


class Recorder:
    """Writes to one sink, and knows whether the sink works."""

    def __init__(self, sink: Sink, clock: Clock, warn: Callable[[str], None], *, deterministic: bool) -> None:
        self._sink = sink
        self._now = clock.now
        self.tick = clock.tick
        """Returns the seconds of the clock that calls end by."""
        self._warn = warn
        self._deterministic = deterministic
        self._failure = AuditFailure(warn)
        self._states: list[CallState] = []
        self._lines: list[RecordLines] = []
        """The records that are held, and the calls that they are of."""
        self._is_holding = False
        self._ts, self._until = b"", -inf
        """The time that records have, and until which tick of the clock."""
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
        # The record has this time, too, or a later one.
        self._ts, self._until = self._now().encode(), state.started + _MOMENT_S
        intent = intent_view(
            noted, state.ids, state, self._deterministic, ts=self._ts, arguments=arguments, keyed=keyed
        )
        try:
            self._sink.intend(intent)
        except Exception as error:  # noqa: BLE001 - a call whose intent cannot be written does not run
            self.has_looked = False
            self._failure.before_a_call(error, state.rules)

    def record(self, state: CallState, is_held: bool = False) -> None:
        """Write the record of a call that has ended, or hold it; `flush` may still change the outcome."""
        tick = self.tick
        ended = state.ended = tick()
        duration_us = state.duration_us = floor((ended - state.started) * _US_PER_S + 0.5)
        if ended >= self._until:
            self._ts, self._until = self._now().encode(), ended + _MOMENT_S
        call, outcome, forms = state.call, state.outcome, state.forms
        assert outcome is not None
        arguments, keyed = None, b""
        if (
            forms is None
            or forms.has_more
            or call.context is not NO_CONTEXT
            or call.arrival.session is not None
            or call.flaw is not None
        ):
            call, arguments, keyed = _noted(state, outcome)
        lines = record_lines(
            call, outcome, state.ids, state, self._ts, duration_us, self._deterministic, arguments, keyed
        )
        self._states.append(state)
        self._lines.append(lines)
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
        states, self._states, lines, self._lines = self._states, [], self._lines, []
        try:
            failed = self._sink.write_all(lines)
        except Exception as error:  # noqa: BLE001 - a record that cannot be written is a failure like any
            failed = dict.fromkeys(range(len(states)), error)
        for place, error in failed.items():
            state = states[place]
            assert state.outcome is not None
            state.outcome = self._failure.after_a_call(error, state.outcome, state.rules)
        self._failure.is_lasting = len(states) - 1 in failed


def _noted(state: CallState, outcome: Outcome) -> tuple[Call, JSONObject | None, bytes]:
    """Return a call as its record shows it, the arguments that it has, and further members."""
    call, rules, arguments, keyed = state.call, state.rules, None, b""
    if rules.audit_key is not None:
        keyed = rules.audit_key.members(call, state.ids[0], outcome)
    if state.tool is None:
        if state.operator_said is not None and call.arguments:  # what the operator decided on
            arguments = state.shown()
        if missing := state.exchange.missing_servers:
            keyed += b',"missing_servers":%b' % shown_json([*missing])
    elif rules.records_arguments:
        arguments = state.shown()
    if call.context is not NO_CONTEXT or state.tool is None or call.arrival.session or call.flaw:
        redactor = state.in_force.rules.redactor
        if redactor is not None:  # the sender's own strings
            call = without_secrets(call, state, redactor)
    return call, arguments, keyed


def without_secrets(call: Call, trail: Trail, redactor: Redactor) -> Call:
    """Return `call` for the record, with secrets in the sender's own strings redacted."""
    is_silent = call.context is NO_CONTEXT and call.arrival.session is None
    if is_silent and call.flaw is None and trail.tool is not None:
        return call  # nearly every call
    if trail.tool is None and call.tool is not None:  # the name of an existing tool is no secret
        call = replace(call, tool=redactor.redact_text(call.tool))
    context = call.context
    if context != NO_CONTEXT:
        said = {
            name: shown
            for name, value in context._asdict().items()
            if isinstance(value, str) and (shown := redactor.redact_text(value)) != value
        }
        if said:
            call = replace(call, context=context._replace(**said))
    session = call.arrival.session
    if session is not None and (shown := redactor.redact_text(session)) != session:
        call = replace(call, arrival=replace(call.arrival, session=shown))
    if call.flaw is not None and call.method is not None:  # a valid method is a known name
        call = replace(call, method=redactor.redact_text(call.method))
    return call


def both_views(
    call: Call,
    outcome: Outcome,
    ids: IdBytes,
    trail: Trail,
    ts: bytes,
    duration_us: int,
    deterministic: bool,
    arguments: JSONObject | None = None,
    keyed: bytes = b"",
) -> tuple[bytes, bytes]:
    """Return the record of one call, as JSON: as the envelope contract has it, and as the execution log.

    `keyed` is the member with the digests under the audit key, where there is one.
    """
    return whole_views(
        record_lines(call, outcome, ids, trail, ts, duration_us, deterministic, arguments, keyed)
    )


def record_lines(
    call: Call,
    outcome: Outcome,
    ids: IdBytes,
    trail: Trail,
    ts: bytes,
    duration_us: int,
    deterministic: bool,
    arguments: JSONObject | None,
    keyed: bytes,
) -> RecordLines:
    """Return `both_views` as the lines that a sink writes."""
    forms, form = trail.forms, None
    if (
        forms is not None
        and call.arrival is forms.arrival
        and trail.caller is forms.caller
        and call.context is NO_CONTEXT
        and trail.approval is None
        and call.contract is forms.contract
        and call.method == forms.method
    ):
        form = forms.form
    if form is None:
        form = _form_of(call, trail, deterministic)
    size, sent, end = 0, call.input_bytes, form.succeeded
    if type(outcome) is Done:
        size = len(outcome.body)
        if trail.is_redacted or arguments is not None or keyed:
            shown = _member_of(arguments) + keyed
            end = form.ended(b"ok", b"200", b"null", b"", _bool(trail.is_redacted), shown)
    else:
        shown = _member_of(arguments) + keyed
        end = _failed(form, cast("Refused | Failed", outcome), trail, shown)
    request, trace, span = ids
    if call.trace is not None:
        trace = _in_quotes(trace)
    if 0 <= duration_us < _FEW:
        took = _BELOW_ONE[duration_us]
    else:
        whole, thousandths = divmod(max(0, duration_us), 1000)  # a clock of a test may go back
        took = b"%d%b" % (whole, _BELOW_ONE[thousandths][1:])
    got = _DECIMALS[size] if size < _FEW else b"%d" % size
    given = _DECIMALS[sent] if sent < _FEW else b"%d" % sent
    last, envelope, execution = form.stamped
    if last is not ts:
        a, b, i, j = form.around_time
        envelope, execution = a + ts + b, i + ts + j
        form.stamped = ts, envelope, execution  # at once: threads of tests share forms
    (c, d, e, f, g, h), (k, m, n, o, p) = end
    return (
        (envelope, request, c, trace, d, span, e, took, f, given, g, got, h),
        [b"", b"", BEFORE_MEMBERS, execution, trace, k, request, m, took, n, given, o, got, p],
    )


def _failed(form: RecordForm, ending: Refused | Failed, trail: Trail, shown: bytes) -> RecordEnd:
    if ending.difference is not None:
        shown = b',"difference":%b%b' % (shown_json(ending.difference), shown)
    error_class = b'"error_class":"%b",' % ending.reason.value.encode()
    code, error = b"%d" % ending.row.http, shown_json(_error(ending))
    return form.ended(b"error", code, error, error_class, _bool(trail.is_redacted), shown)


def _bool(value: bool) -> bytes:
    return b"true" if value else b"false"


def intent_view(
    call: Call,
    ids: IdBytes,
    trail: Trail,
    deterministic: bool = False,
    *,
    ts: bytes,
    arguments: JSONObject | None = None,
    keyed: bytes = b"",
) -> bytes:
    """Return the intent of a call that is about to run, as JSON, so that a crash leaves a trace of it."""
    request, trace, _ = ids
    if call.trace is not None:
        trace = _in_quotes(trace)
    form = _form_of(call, trail, deterministic)
    return form.intent % (ts, trace, request, b"%d" % call.input_bytes, _member_of(arguments) + keyed)


# Small numbers as JSON: writing one takes ten times as long as finding it.
_FEW: Final = 1000
_DECIMALS: Final = tuple(b"%d" % number for number in range(_FEW))

# Thousandths: `0.5`, `0.001`, and `0.0` for none. Most calls take less than a millisecond.
_BELOW_ONE: Final = (b"0.0", *((b"0.%03d" % number).rstrip(b"0") for number in range(1, 1000)))


def _in_quotes(text: bytes) -> bytes:
    """Return a text as it stands between the quotes of JSON: it may be the caller's."""
    return shown_json(text.decode())[1:-1]


def _member_of(arguments: JSONObject | None) -> bytes:
    return b"" if arguments is None else b',"arguments":%b' % shown_json(arguments)


def _form_of(call: Call, trail: Trail, deterministic: bool) -> RecordForm:
    """Return the form of the record; that of most calls is kept with their tool."""
    forms, caller = trail.forms, trail.caller
    if forms is None or caller is None or call.context is not NO_CONTEXT or trail.approval is not None:
        return _made_form(call, trail, deterministic)
    return forms.find(call, caller, partial(_made_form, call, trail, deterministic))


def _made_form(call: Call, trail: Trail, deterministic: bool) -> RecordForm:
    arrival, context, decision, caller = call.arrival, call.context, trail.decision, trail.caller
    spec = None if trail.tool is None else trail.tool.spec
    operation = None if spec is None else spec.operation
    upstream = None if spec is None else spec.upstream
    return record_form(
        context,
        arrival.transport,
        arrival.route,
        context.session or arrival.session,
        call.method,
        call.contract,
        deterministic,
        call.kind,
        call.tool,
        None if spec is None else spec.effect,
        False if spec is None else spec.is_result_unchecked,
        None if upstream is None else upstream.is_confined,
        NO_ROUTE if operation is None else (operation.endpoint, operation.domain, operation.method),
        trail.operator_said if decision is None else decision.action,
        None if decision is None else decision.rule,
        None if decision is None else decision.place,
        None if caller is None else caller.name,
        trail.approval,
        None if trail.bases is None or decision is None else trail.bases.of(decision),
    )


def _error(ending: Ending) -> JSONObject:
    row = ending.row
    violations: list[Any] = [
        {
            "pointer": finding.pointer,
            "schemaPointer": finding.schema_pointer,
            "keyword": finding.keyword,
            "message": finding.message,
        }
        for finding in ending.findings[:_MAX_VIOLATIONS]
    ]
    return {
        "code": row.canonical.code,
        "reason": ending.reason.value,
        "stage": row.stage.value,
        "executed": isinstance(ending, Failed),
        "note": ending.note,
        "violations": violations,
    }
