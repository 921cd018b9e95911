"""The bare dialect: the method is the tool, params are its arguments, answers are results. Pure: no I/O.

The outcome is in `ok` and `reason` of the result, which is never wrapped in an envelope. Only a message that
is not a JSON-RPC request is answered with an error.
"""

from __future__ import annotations

from typing import Any, Final

from portbook.canonical import json_bytes
from portbook.dialects.exchange_contract import MessageExchange
from portbook.dialects.portbook_meta import NO_CONTROLS, context_of, controls_of
from portbook.errors import BareReason, Ending, Finding, Reason, Refused
from portbook.model import JSON, Arrival, Call, Done, JSONObject, Outcome
from portbook.wire.jsonrpc import NO_ID, Id, error_frame, generic_error, refuse_structure, result_frame
from portbook.wire.trace_context import trace_of

__all__ = ["OVERSIZE_RESULT", "Bare", "refusal_frame"]

# The specification's answer to a line over the size guard; it is a result, and its id is null.
OVERSIZE_RESULT: Final = (
    b'{"ok":false,"reason":"validation_failed","errors":[{"path":"","msg":"payload_too_large"}]}'
)

# A longer list would not help, and would let a small message cause a large answer.
_MAX_ERRORS: Final = 100

_NOT_AN_OBJECT: Final = Finding("/params", "expected object", "type", "")
_NO_ID: Final = Finding("/id", "a request needs an id", "required", "")


class Bare:
    """Reads and writes the asset contract."""

    __slots__ = ("tools",)

    def __init__(self, tools: frozenset[str]) -> None:
        """Use the names of the tools that are called this way, whether they are served or not."""
        self.tools = tools

    def read(self, message: JSONObject, identifier: Id, arrival: Arrival) -> MessageExchange:
        """Return `message` as an exchange; where it breaks the contract, its call has that flaw."""
        method = message.get("method")
        name = method if isinstance(method, str) else None
        params = message.get("params", {})
        arguments, meta = _without_meta(params) if isinstance(params, dict) else ({}, {})
        controls = controls_of(meta) if meta else NO_CONTROLS
        call = Call(
            arrival=arrival,
            method=name if name is not None and len(name) <= 128 else None,
            tool=name if name in self.tools else None,
            arguments=arguments,
            input_bytes=len(json_bytes(arguments)) if isinstance(message.get("params"), dict) else 0,
            context=context_of(controls),
            trace=trace_of(meta.get("traceparent")) or trace_of(arrival.traceparent),
            content={"method": method, "params": params},
            flaw=self._flaw(message, params, identifier),
            approval=controls.approval,
            wait_ms=controls.wait_ms,
        )
        return MessageExchange(call, self, identifier)

    def write(self, outcome: Outcome, identifier: Id, method: str | None = None) -> tuple[bytes, int]:
        """Return the answer, which is the same for every method, and its HTTP status."""
        if isinstance(outcome, Done):
            return result_frame(identifier, outcome.body), 200
        row = outcome.row
        if row.bare is None:
            return refusal_frame(outcome, identifier), row.http
        return result_frame(identifier, json_bytes(_result(outcome, row.bare))), row.http

    def _flaw(self, message: JSONObject, params: JSON, identifier: Id) -> Refused | None:
        """Return why `message` cannot be a call.

        1. It is not JSON-RPC.
        2. It has no id, so it could not be answered.
        3. The tool does not exist, whatever the params are.
        4. Its params are not an object: arguments have names.
        """
        if flaw := refuse_structure(message, identifier):
            return flaw
        if identifier is NO_ID:
            return Refused(Reason.NOT_JSONRPC, (_NO_ID,))
        if message["method"] not in self.tools:
            return Refused(Reason.UNKNOWN_METHOD)
        return None if isinstance(params, dict) else Refused(Reason.BAD_PARAMS, (_NOT_AN_OBJECT,))


def _without_meta(params: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Split params into arguments and `_meta`: an approval id must not change the approved arguments."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return params, {}
    return {name: value for name, value in params.items() if name != "_meta"}, meta


def _result(ending: Ending, bare: BareReason) -> dict[str, Any]:
    """Return the result for a refusal or failure: a closed set of reasons, with details."""
    result: dict[str, Any] = {"ok": False, "reason": bare.reason}
    if bare.reason == "validation_failed":
        found = [(finding.pointer, finding.message) for finding in ending.findings[:_MAX_ERRORS]]
        errors = sorted(set(found)) or [("", bare.detail)]
        return {**result, "errors": [{"path": path, "msg": message} for path, message in errors]}
    if bare.reason == "backend_error":
        if ending.reason is Reason.TOOL_ERROR and ending.details.get("error"):
            return {**result, "status": ending.row.http, "detail": ending.details["error"]}
        return result | _backend_error(ending, bare)
    # Details such as the id of the pending approval, or the seconds to wait.
    return {**result, "detail": bare.detail, **ending.details}


def _backend_error(ending: Ending, bare: BareReason) -> dict[str, Any]:
    """Return the status and the detail of a failure behind the tool.

    1. No response arrived: those of the row for that case, where it has some.
    2. The backend answered with an error: its status, and its words.
    3. It rejected the request: its status, and its JSON if the operator gives that.
    4. Everything else, an answer that cannot be used too: those of the row.
    """
    row, answered = ending.row, ending.details.get("upstream_status")
    if answered is None:
        bare = row.bare_if_unanswered or bare
    elif "detail" in ending.details:
        return {"status": answered, "detail": ending.details["detail"]}
    elif ending.reason is not Reason.UPSTREAM_ERROR:
        given = {name: value for name, value in ending.details.items() if name == "upstream_body"}
        return {"status": answered, "detail": bare.detail, **given}
    return {"status": row.http if bare.status is None else bare.status, "detail": bare.detail}


def refusal_frame(ending: Ending, token: bytes) -> bytes:
    """Return the answer to a message that was not served, whatever its contract."""
    if ending.reason is Reason.FRAME_TOO_LARGE:
        return result_frame(NO_ID, OVERSIZE_RESULT)
    return error_frame(token, generic_error(ending))
