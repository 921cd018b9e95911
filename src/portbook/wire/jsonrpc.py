"""JSON-RPC 2.0: the id to echo, checks of requests, and response frames. Pure: no I/O."""

from __future__ import annotations

import json
from typing import Final, TypeAlias

from portbook.canonical import json_bytes
from portbook.errors import Ending, Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern
from portbook.wire.violations import violations

__all__ = [
    "BEFORE_ID",
    "BEFORE_RESULT",
    "MAX_ID_BYTES",
    "NO_ID",
    "Id",
    "UnusableId",
    "error_frame",
    "generic_error",
    "mcp_refusal_frame",
    "nobody_waits",
    "not_an_object",
    "problem_of",
    "read_id",
    "refuse_structure",
    "result_frame",
]

# The answer echoes the id; with a megabyte of it, that would be an amplifier.
MAX_ID_BYTES: Final = 256

# A message's id: its bytes as they are in the message, or null where it has none that can be echoed.
Id: TypeAlias = bytes


class UnusableId(bytes):
    """Null, in place of an id that cannot be echoed, and the problem with it; none where there is no id."""

    problem: str | None

    @classmethod
    def because(cls, problem: str | None) -> UnusableId:
        """Return null, with the problem that the id has."""
        null = cls(b"null")
        null.problem = problem
        return null


NO_ID: Final = UnusableId.because(None)


def problem_of(identifier: Id) -> str | None:
    """Return the problem with an id; None where it can be echoed, and where there is none."""
    return identifier.problem if isinstance(identifier, UnusableId) else None


# Possessive: backtracking is never needed, and its bookkeeping would take 100 bytes per byte.
_TOKENS = late_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]|[^\s",:\[\]{}]++')


def read_id(message: JSONObject, frame: bytes) -> Id:
    """Return the id of `message`, with its bytes as they are in `frame`.

    Only a string or a number of at most `MAX_ID_BYTES` can be echoed; any other id is answered as null.
    """
    value = message.get("id")
    if value is None and "id" not in message:
        return NO_ID
    if type(value) is int and value:  # zero may be written as -0; every other integer has one spelling
        token = b"%d" % value
    elif isinstance(value, str) and frame.find(b"\\") < 0:  # without escapes, a string has one spelling
        token = b'"' + value.encode() + b'"'
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        token = _id_token(frame)
    else:
        return UnusableId.because("must be a string or a number")
    if len(token) > MAX_ID_BYTES:
        return UnusableId.because(f"longer than {MAX_ID_BYTES} bytes; use a shorter id")
    return token


def _id_token(frame: bytes) -> bytes:
    """Find the bytes of the top-level member `id` in a frame that is known to have one."""
    depth = 0
    expects_key = True
    is_id = False
    for match in _TOKENS.finditer(frame):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            expects_key = depth == 1
        elif depth == 1 and expects_key:
            is_id = token == b'"id"' or (b"\\" in token and json.loads(token) == "id")
            expects_key = False
        elif depth == 1:
            if is_id:
                return token
            expects_key = True
    raise AssertionError("a parsed frame has lost its id")  # pragma: no cover


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
