"""JSON-RPC 2.0: checks of requests, and response frames. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.canonical import json_bytes
from portbook.errors import Ending, Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.wire.parsing import NO_ID, Id, problem_of
from portbook.wire.violations import violations

__all__ = [
    "BEFORE_ID",
    "BEFORE_RESULT",
    "OVERSIZE_RESULT",
    "error_frame",
    "generic_error",
    "mcp_refusal_frame",
    "nobody_waits",
    "not_an_object",
    "refusal_frame",
    "refuse_structure",
    "result_frame",
]

# The asset specification's answer to a line over the size guard; it is a result, and its id is null.
OVERSIZE_RESULT: Final = (
    b'{"ok":false,"reason":"validation_failed","errors":[{"path":"","msg":"payload_too_large"}]}'
)


# What comes before the id of a response, and between the id and the result.
BEFORE_ID: Final = b'{"jsonrpc":"2.0","id":'
BEFORE_RESULT: Final = b',"result":'


def not_an_object(message: JSON) -> Refused:
    """Return the refusal of a message that is not an object, such as an unsupported batch."""
    is_batch = isinstance(message, list)
    return _not_jsonrpc(
        "", "batches are not supported; send one request per message" if is_batch else "must be an object"
    )


def refuse_structure(message: JSONObject, identifier: Id) -> Refused | None:
    """Return the refusal of a message that is not a JSON-RPC 2.0 request or notification, or None.

    1. `jsonrpc` is "2.0": without it, the meaning of the other members is unknown.
    2. `id`, where present, is a string or a number that can be echoed.
    3. It is not a response.
    4. `method` is a string, without `result` or `error` beside it.

    The type of `params` is for the dialect to check: an invalid one is an error of its own.
    """
    if message.get("jsonrpc") != "2.0":
        return _not_jsonrpc("/jsonrpc", 'must be "2.0"')
    if problem := problem_of(identifier):
        return _not_jsonrpc("/id", problem)
    if "method" not in message and ("result" in message or "error" in message):
        return _refuse_response(message)
    if not isinstance(message.get("method"), str):
        return _not_jsonrpc("/method", "must be a string")
    for extra in ("result", "error"):
        if extra in message:
            return _not_jsonrpc(f"/{extra}", "not allowed in a request; remove it")
    return None


def _refuse_response(message: JSONObject) -> Refused:
    if "result" in message and "error" in message:
        return _not_jsonrpc("/error", "not allowed beside a result; send one of the two")
    return Refused(Reason.IGNORED, (Finding("/id", "answers no open request", "ignored", ""),))


def nobody_waits(message: JSONObject) -> bool:
    """Return whether `message` must not be answered: it is a notification or a response.

    Answering a response could start an endless exchange of errors.
    """
    if "method" in message:
        return "id" not in message and isinstance(message["method"], str)
    return "result" in message or "error" in message


def _not_jsonrpc(pointer: str, message: str) -> Refused:
    return Refused(Reason.NOT_JSONRPC, (Finding(pointer, message, "jsonrpc", ""),))


def generic_error(ending: Ending, revision: str = "") -> dict[str, object]:
    """Return the error object of a refusal or failure outside of the envelope contract."""
    row = ending.row
    data: dict[str, object] = {"reason": ending.reason.value, "hint": ending.sentence, **ending.details}
    # The sender can fix its own message; the violations of a tool's result are only in the record.
    if ending.findings and row.stage.is_senders_fault:
        data["violations"] = violations(ending)
    return {"code": row.mcp.code_in(revision), "message": row.mcp.message, "data": data}


def refusal_frame(ending: Ending, token: bytes) -> bytes:
    """Return the answer to a message that was not served, whatever its contract."""
    if ending.reason is Reason.FRAME_TOO_LARGE:
        return result_frame(NO_ID, OVERSIZE_RESULT)
    return error_frame(token, generic_error(ending))


def mcp_refusal_frame(ending: Ending, token: bytes | None, revision: str = "") -> bytes:
    """Return the answer to an MCP message that was not served; without a token, it has no id member."""
    error = generic_error(ending, revision)
    if token is None:
        return b'{"jsonrpc":"2.0","error":' + json_bytes(error) + b"}"
    return error_frame(token, error)


def result_frame(token: bytes, result: bytes) -> bytes:
    """Return the response frame with `result`, which is already JSON."""
    return b"".join((BEFORE_ID, token, BEFORE_RESULT, result, b"}"))


def error_frame(token: bytes, error: object) -> bytes:
    """Return the response frame with `error`."""
    return b"".join((BEFORE_ID, token, b',"error":', json_bytes(error), b"}"))
