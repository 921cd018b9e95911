"""Builds the record of a call in two views, and the intent before a call with effects. Pure: no I/O.

Every call has one record, refused calls too. Without `ts`, `traceId`, `spanId`, `requestId`, `durationMs`,
`transport` and `route`, the envelope view is the same at every door; so is the execution view without its
times, ids and chain. Neither holds a result or the text of an exception; arguments are included only where
the operator asked for them, redacted. A caller's own strings are escaped, so that they cannot forge a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from portbook.audit.record_form import NO_ROUTE, RecordForm, json_text, record_form
from portbook.errors import Ending, Failed
from portbook.model import NO_CONTEXT, Call, Caller, Done, Identity, JSONObject, Outcome
from portbook.policy import Decision
from portbook.redaction import Redactor
from portbook.tools.catalog import Tool

__all__ = ["Trail", "both_views", "intent_view", "without_secrets"]

# More than an answer has, and still a bound on what one call can write.
_MAX_VIOLATIONS: Final = 100


@dataclass(slots=True)
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


def without_secrets(call: Call, trail: Trail, redactor: Redactor) -> Call:
    """Return `call` for the record, with secrets in the sender's own strings redacted."""
    is_silent = call.context is NO_CONTEXT and call.arrival.session is None
    if is_silent and call.flaw is None and trail.tool is not None:
        return call  # nearly every call
    if trail.tool is None and call.tool is not None:  # the name of an existing tool is no secret
        call = call._replace(tool=redactor.redact_text(call.tool))
    context = call.context
    if context != NO_CONTEXT:
        said = {
            name: redactor.redact_text(value)
            for name, value in context._asdict().items()
            if isinstance(value, str)
        }
        call = call._replace(context=context._replace(**said))
    if call.arrival.session is not None:
        session = redactor.redact_text(call.arrival.session)
        call = call._replace(arrival=call.arrival._replace(session=session))
    if call.flaw is not None and call.method is not None:  # a valid method is a known name
        call = call._replace(method=redactor.redact_text(call.method))
    return call


def both_views(
    call: Call,
    outcome: Outcome,
    identity: Identity,
    trail: Trail,
    ts: str,
    duration_ms: float,
    deterministic: bool,
    arguments: JSONObject | None = None,
) -> tuple[bytes, bytes]:
    """Return the record of one call, as JSON: as the envelope contract has it, and as the execution log."""
    form = _form_of(call, trail, deterministic)
    request, trace, span = identity
    if call.trace is not None:
        trace = _in_quotes(trace)
    took, sent, size = repr(duration_ms), str(call.input_bytes), "0"
    shown = "" if arguments is None else _member_of(arguments)
    if isinstance(outcome, Done):
        status, code, error, error_class, size = "ok", "200", "null", "", str(len(outcome.body))
    else:
        status, code, error = "error", str(outcome.row.http), json_text(_error(outcome))
        error_class = f'"error_class":"{outcome.reason.value}",'
        if outcome.difference is not None:
            shown = f',"difference":{json_text(outcome.difference)}{shown}'
    redacted = "true" if trail.is_redacted else "false"
    a, b, c, d, e, f, g, h, i, j = form.envelope
    envelope = f"{a}{ts}{b}{request}{c}{trace}{d}{span}{e}{status}{f}{took}{g}{sent}{h}{size}{i}{error}{j}"
    a, b, c, d, e, f, g, h, i, j, k = form.execution
    execution = (
        f"{a}{ts}{b}{trace}{c}{request}{d}{code}{e}{took}{f}{error_class}{g}{redacted}{h}{sent}{i}{size}{j}"
        f"{shown}{k}"
    )
    return envelope.encode(), execution.encode()


def intent_view(
    call: Call, identity: Identity, trail: Trail, *, ts: str, arguments: JSONObject | None = None
) -> bytes:
    """Return the intent of a call that is about to run, as JSON, so that a crash leaves a trace of it."""
    request, trace, _ = identity
    if call.trace is not None:
        trace = _in_quotes(trace)
    shown = "" if arguments is None else _member_of(arguments)
    form = _form_of(call, trail, deterministic=False)
    a, b, c, d, e, f = form.intent
    return f"{a}{ts}{b}{trace}{c}{request}{d}{call.input_bytes}{e}{shown}{f}".encode()


def _in_quotes(text: str) -> str:
    """Return a text as it stands between the quotes of JSON: it may be the caller's."""
    return json_text(text)[1:-1]


def _member_of(arguments: JSONObject) -> str:
    return f',"arguments":{json_text(arguments)}'


def _form_of(call: Call, trail: Trail, deterministic: bool) -> RecordForm:
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
