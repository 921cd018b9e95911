"""The rest dialect: the bodies of `POST /execute` and of its answers. Pure: no I/O.

Every answer has the same members: `status`, `result`, `error`, `metadata`. So has every error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, cast

from portbook.canonical import json_bytes
from portbook.dialects.exchange_contract import BoundaryQuestion, Exchange, OperatorAction, answer_of
from portbook.errors import Ending, Finding, Reason, Refused
from portbook.model import (
    JSON,
    Answer,
    Arrival,
    Call,
    Caller,
    CallerContext,
    Completed,
    Done,
    EnvelopeRequest,
    JSONObject,
)
from portbook.policy import Policy
from portbook.schema.engine import Validator
from portbook.tools.catalog import Tool
from portbook.tools.tool_names import is_slug, slug_of
from portbook.wire.trace_context import trace_of
from portbook.wire.violations import violations

__all__ = ["METHOD", "Rest", "RestExchange", "described", "error_of", "rest_answer"]

METHOD: Final = "execute"


class RestExchange(Exchange):
    """One request of the contract, and how its outcome is written."""

    __slots__ = ()

    def write(self, completed: Completed) -> Answer:
        """Return the answer to the request."""
        return rest_answer(completed)


class Rest:
    """Reads the contract of `/execute`."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Validator) -> None:
        self._schema = schema

    def question(self, method: str, arrival: Arrival, handler: Callable[[Caller], JSON]) -> BoundaryQuestion:
        """Return a request about the boundary itself, which `handler` answers."""
        return BoundaryQuestion(_without_tool(method, arrival), handler)

    def decision(
        self,
        method: str,
        arrival: Arrival,
        act: Callable[[], Awaitable[JSON]],
        approval: str | None,
        says: str | None,
        about: JSONObject | None = None,
    ) -> OperatorAction:
        """Return what an operator requests; `act` does it, the record has `says` and what it is `about`."""
        call = replace(
            _without_tool(method, arrival), approval=approval, operator_says=says, arguments=about or {}
        )
        return OperatorAction(call, act)

    def read(self, body: JSON, arrival: Arrival, tool: str | None = None) -> RestExchange:
        """Return `body` as an exchange; where it breaks the contract, its call has that flaw.

        A `tool` named by the route replaces the `tool_id` of the body.
        """
        flaw = None
        if tool is not None and isinstance(body, dict):
            body = {"tool_id": tool, **body}
            if slug_of(str(body["tool_id"])) != slug_of(tool):
                flaw = Refused(
                    Reason.BAD_PARAMS, (Finding("/tool_id", "must be the tool in the route", "const", ""),)
                )
        if flaw is None and not self._schema.allows(body):
            flaw = Refused(Reason.BAD_PARAMS, self._schema.findings(body))
        given = body if isinstance(body, dict) else {}
        arguments = given.get("args")
        call = Call(
            arrival=arrival,
            method=METHOD,
            tool=_slug(given.get("tool_id")),
            arguments=arguments if isinstance(arguments, dict) else {},
            input_bytes=len(json_bytes(arguments)) if "args" in given else 0,
            context=CallerContext() if flaw else _context(given),
            trace=_trace(given, arrival) if flaw is None else trace_of(arrival.traceparent),
            content={"method": METHOD, "params": given},
            flaw=flaw,
            approval=None if flaw else cast("str | None", given.get("approval_id")),
            wait_ms=0 if flaw else int(cast("float", given.get("wait_ms", 0))),
            wish=EnvelopeRequest(given.get("_meta")),
        )
        return RestExchange(call)


def rest_answer(completed: Completed) -> Answer:
    """Return the answer to a completed call: all of its members, whatever became of it."""
    outcome, identity = completed.outcome, completed.identity
    status = 200 if isinstance(outcome, Done) else outcome.row.http
    metadata: JSONObject = {
        "latency_ms": completed.duration_ms,
        "status_code": status,
        "request_id": identity.request,
        "trace_id": identity.trace,
        "redaction_applied": completed.is_redacted,
    }
    if completed.approval is not None:
        metadata["approval_id"] = completed.approval
    if completed.links:
        metadata["links"] = completed.links
    tail = b',"metadata":' + json_bytes(metadata) + b"}"
    if isinstance(outcome, Done):  # already serialized
        body = b'{"status":"success","result":' + outcome.wire + b',"error":null' + tail
        return answer_of(completed, body, status)
    error = json_bytes(error_of(outcome))
    result = b"null" if outcome.envelope is None else json_bytes(outcome.envelope)
    body = b'{"status":"failure","result":' + result + b',"error":' + error + tail
    return answer_of(completed, body, status)


def _without_tool(method: str, arrival: Arrival) -> Call:
    return Call(
        arrival=arrival,
        method=method,
        tool=None,
        arguments={},
        input_bytes=0,
        context=CallerContext(),
        trace=trace_of(arrival.traceparent),
        content={"method": method, "params": {}},
    )


def described(tool: Tool, policy: Policy) -> JSONObject:
    """Return the entry of a tool in `GET /tools`."""
    spec, operation = tool.spec, tool.spec.operation
    methods = policy.methods
    return {
        "tool_id": spec.identifier,
        "name": spec.name,
        "description": spec.description,
        "effect": spec.effect.value,
        "args_schema": spec.input_schema,
        "result_schema": spec.listed_output,
        "allowed_methods": (
            [operation.method] if operation and (methods is None or operation.method in methods) else []
        ),
        "allowed_domains": (
            [operation.domain] if operation and operation.domain and policy.lists(operation) else []
        ),
        "timeout_ms": spec.timeout_ms,
    }


def error_of(ending: Ending) -> JSONObject:
    """Return the error object of an ending, always with the same five members."""
    row = ending.row
    details: dict[str, Any] = {"reason": ending.reason.value, **ending.details}
    sentence = details.pop("hint", ending.sentence)  # a more specific sentence, where there is one
    if ending.reason is Reason.TOOL_ERROR:
        sentence = details.get("error", sentence)  # the tool's own
    # The sender can fix its own message; the violations of a tool's result are only in the record.
    if ending.findings and row.stage.is_senders_fault:
        details["violations"] = violations(ending)
    return {
        "code": row.rest,
        "message": sentence,
        "details": details,
        "retryable": ending.is_retryable,
        "policy_violation": row.rest == "POLICY_VIOLATION",
    }


def _slug(tool: JSON) -> str | None:
    name = slug_of(tool) if isinstance(tool, str) else ""
    return name if is_slug(name) else None


def _context(given: JSONObject) -> CallerContext:
    return CallerContext(
        step_id=int(cast("float", given.get("agent_step", 1))),
        attempt=int(cast("float", given.get("attempt", 1))),
        session=cast("str", given["session_id"]),
        correlation=cast("str | None", given.get("correlation_id")),
    )


def _trace(given: JSONObject, arrival: Arrival) -> str | None:
    named = given.get("trace_id")
    return cast("str", named) if named is not None else trace_of(arrival.traceparent)
