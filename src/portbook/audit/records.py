"""Builds the record of a call in two views, and the intent before a call with effects. Pure: no I/O.

Every call has one record, refused calls too. Without `ts`, `traceId`, `spanId`, `requestId`, `durationMs`,
`transport` and `route`, the envelope view is the same at every door; so is the execution view without its
times, ids and chain. Neither holds a result or the text of an exception; arguments are included only where
the operator asked for them, redacted. A caller's own strings are escaped, so that they cannot forge a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from portbook.errors import Ending, Failed
from portbook.escaping import escaped
from portbook.model import Call, Caller, CallerContext, Done, Identity, JSONObject, Outcome
from portbook.policy import Decision
from portbook.redaction import Redactor
from portbook.tools.catalog import Tool
from portbook.tools.spec import identifier_of

__all__ = ["Trail", "envelope_view", "execution_view", "intent_view", "without_secrets"]

# More than an answer has, and still a bound on what one call can write.
_MAX_VIOLATIONS: Final = 100

_UNSAID: Final = CallerContext()


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
    if trail.tool is None and call.tool is not None:  # the name of an existing tool is no secret
        call = call._replace(tool=redactor.redact_text(call.tool))
    context = call.context
    if context is not _UNSAID and context != _UNSAID:
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


def envelope_view(
    call: Call, outcome: Outcome, identity: Identity, *, ts: str, duration_ms: float, deterministic: bool
) -> JSONObject:
    """Return the record of one call in the form of the envelope contract."""
    context = call.context
    done = isinstance(outcome, Done)
    return {
        "ts": ts,
        "agentId": _safe(context.agent_id),
        "taskId": _safe(context.task_id),
        "stepId": _step(context),
        "transport": call.arrival.transport,
        "route": call.arrival.route,
        "method": _safe(call.method),
        "requestId": identity.request,
        "traceId": identity.trace,
        "spanId": identity.span,
        "status": "ok" if done else "error",
        "durationMs": duration_ms,
        "attempt": context.attempt,
        "inputBytes": call.input_bytes,
        "outputBytes": len(outcome.body) if done else 0,
        "metadata": {
            "schemaVersion": call.contract,
            "deterministic": deterministic,
            "toolId": None if call.tool is None else identifier_of(call.kind, call.tool),
            "promptId": _safe(context.prompt_id),
        },
        "error": None if done else _error(outcome),
    }


def execution_view(
    call: Call, outcome: Outcome, identity: Identity, trail: Trail, *, ts: str, latency_ms: float
) -> JSONObject:
    """Return the record of one call in the form of the execution log."""
    done = isinstance(outcome, Done)
    record = _about(call, identity, trail, ts)
    record["status_code"] = 200 if done else outcome.row.http
    record["latency_ms"] = latency_ms
    if not done:
        record["error_class"] = outcome.reason.value
    record["redaction_applied"] = trail.is_redacted
    record |= _decided(call, trail)
    record["output_bytes"] = len(outcome.body) if done else 0
    return record


def intent_view(call: Call, identity: Identity, trail: Trail, *, ts: str) -> JSONObject:
    """Return the intent of a call that is about to run, so that a crash leaves a trace of it."""
    return _about(call, identity, trail, ts) | _decided(call, trail)


def _about(call: Call, identity: Identity, trail: Trail, ts: str) -> JSONObject:
    context = call.context
    operation = None if trail.tool is None else trail.tool.spec.operation
    return {
        "timestamp": ts,
        "session_id": _safe(context.session or call.arrival.session),
        "trace_id": identity.trace,
        "request_id": identity.request,
        "tool_id": None if call.tool is None else identifier_of(call.kind, call.tool),
        "endpoint": None if operation is None else operation.endpoint,
        "domain": None if operation is None else operation.domain,
        "method": None if operation is None else operation.method,
        "agent_step": _step(context),
        "attempt": context.attempt,
    }


def _decided(call: Call, trail: Trail) -> JSONObject:
    decision, tool = trail.decision, trail.tool
    return {
        "decision": trail.operator_said if decision is None else decision.action.value,
        "rule": None if decision is None else f"{decision.rule} ({decision.place})",
        "caller": None if trail.caller is None else trail.caller.name,
        "approval_id": trail.approval,
        "effect": None if tool is None else tool.spec.effect.value,
        "input_bytes": call.input_bytes,
    }


def _safe(text: str | None) -> str | None:
    return None if text is None else escaped(text)


def _step(context: CallerContext) -> int | str:
    return escaped(context.step_id) if isinstance(context.step_id, str) else context.step_id


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
