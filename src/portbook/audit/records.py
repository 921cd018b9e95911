"""Builds the record of a call in two views, and the intent before a call with effects. Pure: no I/O.

Every call has one record, refused calls too. Without `ts`, `traceId`, `spanId`, `requestId`, `durationMs`,
`transport` and `route`, the envelope view is the same at every door; so is the execution view without its
times, ids and chain. Neither holds a result or the text of an exception; arguments are included only where
the operator asked for them, redacted. A caller's own strings are escaped, so that they cannot forge a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from portbook.canonical import json_bytes
from portbook.errors import Ending, Failed
from portbook.escaping import escaped, escaped_json_bytes
from portbook.model import NO_CONTEXT, Call, Caller, CallerContext, Done, Identity, JSONObject, Kind, Outcome
from portbook.policy import Decision
from portbook.redaction import Redactor
from portbook.tools.catalog import Tool
from portbook.tools.spec import identifier_of

__all__ = ["Trail", "envelope_view", "execution_view", "intent_view", "without_secrets"]

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


def envelope_view(
    call: Call,
    outcome: Outcome,
    identity: Identity,
    *,
    ts: str,
    duration_ms: float,
    deterministic: bool,
    is_unchecked: bool = False,
) -> bytes:
    """Return the record of one call in the form of the envelope contract, as JSON.

    `is_unchecked` tells that the result of its tool is given unchecked.
    """
    arrival, context = call.arrival, call.context
    sender, contract = _sender_and_contract(
        context,
        arrival.transport,
        arrival.route,
        call.method,
        call.contract,
        deterministic,
        call.kind,
        call.tool,
    )
    if is_unchecked:
        contract = contract[:-1] + ',"outputChecked":false}'
    if isinstance(outcome, Done):
        status, size, error = "ok", len(outcome.body), "null"
    else:
        status, size, error = "error", 0, _json(_error(outcome))
    return (
        f'{{"ts":"{ts}",{sender},"requestId":"{identity.request}","traceId":{_trace(call, identity)},'
        f'"spanId":"{identity.span}","status":"{status}","durationMs":{duration_ms},'
        f'"attempt":{context.attempt},"inputBytes":{call.input_bytes},"outputBytes":{size},'
        f'"metadata":{contract},"error":{error}}}'
    ).encode()


def execution_view(
    call: Call,
    outcome: Outcome,
    identity: Identity,
    trail: Trail,
    *,
    ts: str,
    latency_ms: float,
    arguments: JSONObject | None = None,
) -> bytes:
    """Return the record of one call in the form of the execution log, as JSON."""
    done = isinstance(outcome, Done)
    status, size = (200, len(outcome.body)) if done else (outcome.row.http, 0)
    error = "" if done else f'"error_class":"{outcome.reason.value}",'
    redacted = "true" if trail.is_redacted else "false"
    is_unchecked = trail.tool is not None and trail.tool.spec.is_result_unchecked
    unchecked = '"output_checked":false,' if is_unchecked else ""
    return (
        f'{{{_about(call, identity, trail, ts)},"status_code":{status},"latency_ms":{latency_ms},{error}'
        f'"redaction_applied":{redacted},{unchecked}{_decided(call, trail)},"output_bytes":{size}'
        f"{'' if done else _difference_in(outcome)}{'' if arguments is None else _member_of(arguments)}}}"
    ).encode()


def intent_view(
    call: Call, identity: Identity, trail: Trail, *, ts: str, arguments: JSONObject | None = None
) -> bytes:
    """Return the intent of a call that is about to run, as JSON, so that a crash leaves a trace of it."""
    about, decided = _about(call, identity, trail, ts), _decided(call, trail)
    return f"{{{about},{decided}{'' if arguments is None else _member_of(arguments)}}}".encode()


def _about(call: Call, identity: Identity, trail: Trail, ts: str) -> str:
    context, operation = call.context, None if trail.tool is None else trail.tool.spec.operation
    route = _NO_ROUTE if operation is None else (operation.endpoint, operation.domain, operation.method)
    session = context.session or call.arrival.session
    return (
        f'"timestamp":"{ts}","session_id":{"null" if session is None else _safe(session)},'
        f'"trace_id":{_trace(call, identity)},"request_id":"{identity.request}",'
        f"{_tool_part(call.kind, call.tool, route)},"
        f'"agent_step":{_step(context.step_id)},"attempt":{context.attempt}'
    )


def _decided(call: Call, trail: Trail) -> str:
    caller, tool = trail.caller, trail.tool
    part = _decision_part(
        trail.decision,
        trail.operator_said,
        None if caller is None else caller.name,
        trail.approval,
        None if tool is None else tool.spec.effect.value,
    )
    return f'{part},"input_bytes":{call.input_bytes}'


def _difference_in(ending: Ending) -> str:
    """Return the difference of a withheld definition as a member, where the call was one of it."""
    return "" if ending.difference is None else f',"difference":{_json(ending.difference)}'


def _member_of(arguments: JSONObject) -> str:
    return f',"arguments":{_json(arguments)}'


# The parts below are the same for most calls, so each is written once and kept. What a caller says of itself
# is among them: their number is limited.
_KEPT: Final = 512

# The endpoint, domain and method of a tool that calls no API.
_NO_ROUTE: Final = (None, None, None)


@lru_cache(maxsize=_KEPT)
def _sender_and_contract(
    context: CallerContext,
    transport: str,
    route: str,
    method: str | None,
    contract: str,
    deterministic: bool,
    kind: Kind,
    tool: str | None,
) -> tuple[str, str]:
    sender = {
        "agentId": _safe(context.agent_id),
        "taskId": _safe(context.task_id),
        "stepId": _step(context.step_id),
        "transport": _json(transport),
        "route": _json(route),
        "method": _safe(method),
    }
    metadata = {
        "schemaVersion": _json(contract),
        "deterministic": _json(deterministic),
        "toolId": _json(None if tool is None else identifier_of(kind, tool)),
        "promptId": _safe(context.prompt_id),
    }
    return _members(sender), f"{{{_members(metadata)}}}"


@lru_cache(maxsize=_KEPT)
def _tool_part(kind: Kind, tool: str | None, route: tuple[str | None, ...]) -> str:
    return _members(
        {
            "tool_id": _json(None if tool is None else identifier_of(kind, tool)),
            **dict(zip(("endpoint", "domain", "method"), map(_json, route), strict=True)),
        }
    )


@lru_cache(maxsize=_KEPT)
def _decision_part(
    decision: Decision | None, said: str | None, caller: str | None, approval: str | None, effect: str | None
) -> str:
    return _members(
        {
            "decision": _json(said if decision is None else decision.action.value),
            "rule": _json(None if decision is None else f"{decision.rule} ({decision.place})"),
            "caller": _json(caller),
            "approval_id": _json(approval),
            "effect": _json(effect),
        }
    )


@lru_cache(maxsize=_KEPT)
def _safe(text: str | None) -> str:
    """Return a caller's text as JSON, on one line and cut."""
    return _json(None if text is None else escaped(text))


@lru_cache(maxsize=_KEPT)
def _step(step: int | str) -> str:
    return _safe(step) if isinstance(step, str) else str(step)


def _trace(call: Call, identity: Identity) -> str:
    """Return the trace as JSON: it may be the caller's, where the ids beside it are ours."""
    return f'"{identity.trace}"' if call.trace is None else _json(identity.trace)


def _members(parts: Mapping[str, str]) -> str:
    return ",".join(f'"{name}":{value}' for name, value in parts.items())


def _json(value: Any) -> str:
    """Return `value` as compact JSON, with the invisible characters of a caller's text escaped."""
    try:
        # Not `json_bytes`: its search for NaN takes longer than the writing, and a record has none.
        body = orjson.dumps(value)
    except orjson.JSONEncodeError:  # a caller's integer that is too long for orjson
        body = json_bytes(value)
    return escaped_json_bytes(body).decode()


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
