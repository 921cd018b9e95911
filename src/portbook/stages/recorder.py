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
from typing import Any, Final, cast

from portbook.audit.basis import Bases
from portbook.audit.record_form import NO_ROUTE, RecordEnd, RecordForm, record_form, shown_json
from portbook.clock import Clock
from portbook.errors import Ending, Failed, Refused
from portbook.model import NO_CONTEXT, Call, Done, IdBytes, JSONObject, Outcome
from portbook.redaction import Redactor
from portbook.stages.audit_failure import AuditFailure
from portbook.stages.ports import Sink
from portbook.stages.rules import Rules
from portbook.stages.state import CallState, Trail

__all__ = ["Recorder", "both_views", "intent_view", "without_secrets"]

# More than an answer has, and still a bound on what one call can write.
_MAX_VIOLATIONS: Final = 100


class Recorder:
    """Writes to one sink, and knows whether the sink works."""

    def __init__(self, sink: Sink, clock: Clock, warn: Callable[[str], None], *, deterministic: bool) -> None:
        self._sink = sink
        self._now, self._tick = clock.now, clock.tick
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
        ts = self._now().encode()
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
        state.duration_us = round((self._tick() - state.started) * 1_000_000)
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
            self._now().encode(),
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
    forms, form = trail.forms, None
    if forms is not None and call.arrival is forms.arrival and trail.caller is forms.caller:
        is_alike = call.context is NO_CONTEXT and trail.approval is None and call.contract is forms.contract
        form = forms.form if is_alike and call.method == forms.method else None
    if form is None:
        form = _form_of(call, trail, deterministic)
    if type(outcome) is Done:
        size = _DECIMALS[len(outcome.body)]
        end = form.succeeded
        if trail.is_redacted or arguments is not None or keyed:
            shown = _member_of(arguments) + keyed
            end = form.ended(b"ok", b"200", b"null", b"", _bool(trail.is_redacted), shown)
    else:
        size = b"0"
        shown = _member_of(arguments) + keyed
        end = _failed(form, cast("Refused | Failed", outcome), trail, shown)
    request, trace, span = ids
    if call.trace is not None:
        trace = _in_quotes(trace)
    took = _DECIMALS[duration_us // 1000] + _THOUSANDTHS[duration_us % 1000]
    sent = _DECIMALS[call.input_bytes]
    (a, b, c, d, e, f, g, h), (i, j, k, m, n, o, p) = end
    return (
        b"".join((a, ts, b, request, c, trace, d, span, e, took, f, sent, g, size, h)),
        b"".join((i, ts, j, trace, k, request, m, took, n, sent, o, size, p)),
    )


def _failed(form: RecordForm, ending: Refused | Failed, trail: Trail, shown: bytes) -> RecordEnd:
    if ending.difference is not None:
        shown = b',"difference":%b%b' % (shown_json(ending.difference), shown)
    error_class = b'"error_class":"%b",' % ending.reason.value.encode()
    code, error = _DECIMALS[ending.row.http], shown_json(_error(ending))
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
    return form.intent % (ts, trace, request, _DECIMALS[call.input_bytes], _member_of(arguments) + keyed)


class _Decimals(dict[int, bytes]):
    """Numbers as JSON. Writing one takes ten times as long as finding it; the first thousand are kept."""

    def __missing__(self, number: int) -> bytes:
        written = b"%d" % number
        if number < 1000:
            self[number] = written
        return written


_DECIMALS: Final = _Decimals()

# Thousandths as they follow a number: `.5`, `.001`, and `.0` for none. Durations have them all.
_THOUSANDTHS: Final = (b".0", *((b".%03d" % number).rstrip(b"0") for number in range(1, 1000)))


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
