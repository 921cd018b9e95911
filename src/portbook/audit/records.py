"""Builds the record of a call in two views, and the intent before a call with effects. Pure: no I/O.

Every call has one record, refused calls too. Without `ts`, `traceId`, `spanId`, `requestId`, `durationMs`,
`transport` and `route`, the envelope view is the same at every door; so is the execution view without its
times, ids and chain. Neither holds a result or the text of an exception; arguments are included only where
the operator asked for them, redacted. A caller's own strings are escaped, so that they cannot forge a line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

from portbook.audit.basis import Bases
from portbook.audit.record_form import (
    NO_ROUTE,
    RecordEnd,
    RecordForm,
    RecordForms,
    record_form,
    shown_json,
)
from portbook.errors import Ending, Failed, Refused
from portbook.model import NO_CONTEXT, Call, Caller, Done, IdBytes, JSONObject, Outcome
from portbook.policy import Decision
from portbook.redaction import Redactor
from portbook.tools.catalog import Tool

__all__ = ["Trail", "both_views", "intent_view", "without_secrets"]

# More than an answer has, and still a bound on what one call can write.
_MAX_VIOLATIONS: Final = 100


@dataclass(slots=True, eq=False, repr=False)
class Trail:
    """The state that a call collects on its way through the stages; the only mutable value there."""

    caller: Caller | None = None
    tool: Tool | None = None
    decision: Decision | None = None
    approval: str | None = None
    is_redacted: bool = False
    has_begun: bool = False
    """Whether a tool was started that may have had effects."""
    operator_said: str | None = None
    """The operator's decision, where the call is one."""
    started: float = 0.0
    """When the call started, in ticks of the clock."""
    forms: RecordForms | None = None
    """The forms of earlier records that differ only in how the call came in, its method, its caller and its
    session. None where more differs."""
    bases: Bases | None = None
    """What decides on calls of the tool."""


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
