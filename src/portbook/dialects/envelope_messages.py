"""The envelope dialect: method `mcp.tool.invoke`, params `{tool, input}`, five errors. Pure: no I/O."""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.canonical import json_bytes
from portbook.dialects.exchange_contract import MessageExchange
from portbook.dialects.portbook_meta import NO_CONTROLS, RequestMeta, controls_of
from portbook.errors import CanonicalError, Finding, Reason, Refused, Stage
from portbook.model import (
    JSON,
    NO_CONTEXT,
    Arrival,
    Call,
    CallerContext,
    Done,
    EnvelopeRequest,
    JSONObject,
    Outcome,
)
from portbook.schema.engine import Validator
from portbook.tools.tool_names import TOOL_PREFIX, is_slug
from portbook.wire.jsonrpc import Id, error_frame, problem_of, refuse_structure, result_frame
from portbook.wire.trace_context import trace_of
from portbook.wire.violations import violations

__all__ = ["METHOD", "REQUEST_METHOD", "Envelope"]

METHOD: Final = "mcp.tool.invoke"
# Its params are an `mcp.request.v0.1`, and its result is an envelope.
REQUEST_METHOD: Final = "mcp.request"


class Envelope:
    """Reads and writes the envelope contract."""

    __slots__ = ("_request", "_schema")

    def __init__(self, schema: Validator, request: Validator) -> None:
        """Use the schemas of a call, and of a request whose answer is an envelope."""
        self._schema = schema
        self._request = request

    def read(self, message: JSONObject, identifier: Id, arrival: Arrival) -> MessageExchange:
        """Return `message` as an exchange; where it breaks the contract, its call has that flaw."""
        is_request = message.get("method") == REQUEST_METHOD
        read = self._read_request if is_request else self._read_call
        return MessageExchange(read(message, identifier, arrival), self, identifier)

    def _read_call(self, message: JSONObject, identifier: Id, arrival: Arrival) -> Call:
        flaw = self._flaw(message, identifier)
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        method, given, meta = message.get("method"), params.get("input"), params.get("_meta")
        controls = controls_of(meta) if isinstance(meta, dict) else NO_CONTROLS
        return Call(  # by position: keyword arguments would double the cost
            arrival,
            method if isinstance(method, str) and len(method) <= 128 else None,
            _slug(params.get("tool")),
            given if isinstance(given, dict) else {},
            len(json_bytes(given)) if "input" in params else 0,
            _context(params.get("context"), controls),
            _trace(meta, arrival),
            {"method": method, "params": params},
            flaw,
            approval=controls.approval,
            wait_ms=controls.wait_ms,
            wish=None if meta is None else EnvelopeRequest(meta),
        )

    def _read_request(self, message: JSONObject, identifier: Id, arrival: Arrival) -> Call:
        from portbook.envelope.request_for_envelope import read_request, take_meta  # late: seldom sent

        given = message.get("params")
        flaw = refuse_structure(message, identifier)
        if flaw is None and identifier in (b'""', b"null"):
            flaw = _bad_envelope("/id", "a request needs an id: a number or a string that is not empty")
        request = None
        if flaw is None:
            try:
                request = read_request(given, self._request, at="/params")
            except Refused as refused:
                flaw = Refused(Reason.BAD_ENVELOPE, refused.findings)
        params = given if isinstance(given, dict) else {}
        meta = take_meta(_object(params.get("params")))[1]
        controls = controls_of(_object(meta))
        arguments = {} if request is None else request.arguments
        return Call(
            arrival,
            REQUEST_METHOD,
            _slug(TOOL_PREFIX + request.tool) if request is not None else None,
            arguments,
            len(json_bytes(arguments)),
            _context(None, controls),
            _trace(meta, arrival),
            {"method": REQUEST_METHOD, "params": params},
            flaw,
            approval=controls.approval,
            wait_ms=controls.wait_ms,
            wish=EnvelopeRequest(
                meta,
                _object(params.get("preferences")),
                tuple(cast("list[JSON]", params.get("artifacts", []))) if request is not None else (),
                None if request is None else request.request_id,
                is_required=True,
            ),
        )

    def write(self, outcome: Outcome, identifier: Id, method: str | None = METHOD) -> tuple[bytes, int]:
        """Return the answer to a message of this method, and its HTTP status."""
        if isinstance(outcome, Done):
            return result_frame(identifier, outcome.wire), 200
        row, envelope = outcome.row, outcome.envelope
        if envelope is not None and method == REQUEST_METHOD:  # the envelope holds the tool's failure
            return result_frame(identifier, json_bytes(envelope)), 200
        error: dict[str, Any] = dict(CanonicalError.to_jsonrpc_error(row.canonical.code))
        if row.canonical.reason:
            error["data"]["reason"] = row.canonical.reason
        # The caller can fix its own message; the violations of a tool's result are only in the record.
        if row.canonical.code == "INVALID_INPUT":
            error["data"]["violations"] = violations(outcome)
        error["data"].update(outcome.details)
        if row.stage in (Stage.DECIDE, Stage.APPROVE):  # so that clients can tell a denial from an error
            error["data"]["retryable"] = outcome.is_retryable
            error["data"]["policy_violation"] = row.rest == "POLICY_VIOLATION"
        if envelope is not None:
            error["data"]["envelope"] = envelope
        return error_frame(identifier, error), row.http

    def _flaw(self, message: JSONObject, identifier: Id) -> Refused | None:
        if not self._schema.allows(message):
            return Refused(Reason.BAD_ENVELOPE, self._schema.findings(message))
        if problem := problem_of(identifier):
            return _bad_envelope("/id", problem)
        if message["method"] != METHOD:
            return _bad_envelope("/method", f'must be "{METHOD}"')
        return None


def _slug(tool: JSON) -> str | None:
    """Return the tool's name where it is valid: nothing else goes into the record."""
    if not isinstance(tool, str) or not tool.startswith(TOOL_PREFIX):
        return None
    name = tool.removeprefix(TOOL_PREFIX)
    return name if is_slug(name) else None


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _bad_envelope(pointer: str, message: str) -> Refused:
    return Refused(Reason.BAD_ENVELOPE, (Finding(pointer, message, "envelope", ""),))


def _context(given: JSON, controls: RequestMeta) -> CallerContext:
    """Return the caller's claims about itself; of an invalid envelope, those that are usable."""
    if given is None and controls is NO_CONTROLS:
        return NO_CONTEXT
    context = given if isinstance(given, dict) else {}
    return CallerContext(
        agent_id=_label(context.get("agentId")),
        task_id=_label(context.get("taskId")),
        step_id=_step(context.get("stepId", controls.step)),
        attempt=_number(context.get("attempt", controls.attempt)) or 1,
        prompt_id=_label(context.get("promptId")),
        session=controls.session,
        correlation=controls.correlation,
    )


def _label(value: JSON) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 256 else None


def _step(value: JSON) -> int | str:
    number = _number(value)
    return number if number is not None else _label(value) or 1


def _number(value: JSON) -> int | None:
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    return int(cast("float", value)) if is_whole and 0 <= cast("float", value) < 2**53 else None


def _trace(meta: JSON, arrival: Arrival) -> str | None:
    # The call's own `_meta` wins over a header, which a proxy may have added.
    own = trace_of(meta.get("traceparent")) if isinstance(meta, dict) else None
    return own or (trace_of(arrival.traceparent) if arrival.traceparent else None)
