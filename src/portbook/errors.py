"""The one table of reasons: why a call did not succeed, and what each contract says of it.

Rules it keeps: every reason appears once; every column is filled (a test checks); no code number is
written anywhere else. Pure: no I/O.

The endings that are not a success::

    Exception
      Ending              a reason, the findings behind it, a value-free note for the record
        Refused           we said no: nothing ran
        Failed            it ran, or may have run
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

__all__ = [
    "REASONS",
    "CanonicalError",
    "Ending",
    "Failed",
    "Finding",
    "JSONRPCError",
    "Reason",
    "Refused",
    "Row",
    "Stage",
]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One violation, as data: where it is, which rule it breaks, and what to do, in words without values."""

    pointer: str
    """RFC 6901 pointer into the document that was checked; its root is the empty string."""
    message: str
    keyword: str
    schema_pointer: str


class Stage(StrEnum):
    """The part of the path in which a reason arises."""

    FRAME = "frame"
    PARSE = "parse"
    CLASSIFY = "classify"
    READ = "read"
    AUTHENTICATE = "authenticate"
    RESOLVE = "resolve"
    DECIDE = "decide"
    ARGUMENTS = "arguments"
    APPROVE = "approve"
    EXECUTE = "execute"
    RESULT = "result"
    RECORD = "record"

    @property
    def is_senders_fault(self) -> bool:
        """Return whether the sender can mend what was found here; later ones are the tool's."""
        return self not in (Stage.EXECUTE, Stage.RESULT, Stage.RECORD)


class _CanonicalErrorData(TypedDict):
    canonical_code: str


class JSONRPCError(TypedDict):
    """The error object of a canonical error, as it stands in a JSON-RPC answer."""

    code: int
    message: str
    data: _CanonicalErrorData


@dataclass(frozen=True, slots=True)
class _Canonical:
    http: int
    jsonrpc: int
    message: str


_CANONICAL = {
    "INVALID_INPUT": _Canonical(400, -32602, "Invalid params"),
    "INVALID_OUTPUT": _Canonical(502, -32002, "Invalid tool output"),
    "NOT_FOUND": _Canonical(404, -32004, "Resource not found"),
    "UNAUTHORIZED": _Canonical(401, -32001, "Unauthorized"),
    "INTERNAL_ERROR": _Canonical(500, -32603, "Internal error"),
}


class CanonicalError:
    """The five codes of the envelope contract. An unknown code is a `KeyError` everywhere."""

    @staticmethod
    def codes() -> tuple[str, ...]:
        """Return the five codes, in the order of the contract."""
        return tuple(_CANONICAL)

    @staticmethod
    def to_http_status(code: str) -> int:
        """Return the HTTP status of `code`."""
        return _CANONICAL[code].http

    @staticmethod
    def to_jsonrpc_error(code: str) -> JSONRPCError:
        """Return a fresh JSON-RPC error object for `code`."""
        row = _CANONICAL[code]
        return {"code": row.jsonrpc, "message": row.message, "data": {"canonical_code": code}}


class Reason(StrEnum):
    """Why a call ended without a result."""

    FRAME_TOO_LARGE = "FRAME_TOO_LARGE"
    FRAME_TOO_SLOW = "FRAME_TOO_SLOW"
    NOT_JSON_CONTENT = "NOT_JSON_CONTENT"
    NOT_ACCEPTABLE = "NOT_ACCEPTABLE"
    FOREIGN_HOST = "FOREIGN_HOST"
    UNKNOWN_SESSION = "UNKNOWN_SESSION"
    NOT_JSON = "NOT_JSON"
    NOT_JSONRPC = "NOT_JSONRPC"
    UNKNOWN_METHOD = "UNKNOWN_METHOD"
    ID_IN_USE = "ID_IN_USE"
    UNSUPPORTED_REVISION = "UNSUPPORTED_REVISION"
    HEADER_MISMATCH = "HEADER_MISMATCH"
    BAD_PARAMS = "BAD_PARAMS"
    BAD_ENVELOPE = "BAD_ENVELOPE"
    UNAUTHORIZED = "UNAUTHORIZED"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    UNKNOWN_RESOURCE = "UNKNOWN_RESOURCE"
    UNKNOWN_PROMPT = "UNKNOWN_PROMPT"
    UNKNOWN_TASK = "UNKNOWN_TASK"
    MISSING_CAPABILITY = "MISSING_CAPABILITY"
    POLICY_VIOLATION = "POLICY_VIOLATION"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
    BAD_ARGUMENTS = "BAD_ARGUMENTS"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    APPROVAL_DENIED = "APPROVAL_DENIED"
    APPROVAL_REFUSED = "APPROVAL_REFUSED"
    APPROVAL_UNKNOWN = "APPROVAL_UNKNOWN"
    APPROVAL_SETTLED = "APPROVAL_SETTLED"
    NO_ANSWER = "NO_ANSWER"
    STORE_UNUSABLE = "STORE_UNUSABLE"
    BUSY = "BUSY"
    TIMEOUT = "TIMEOUT"
    UPSTREAM_ERROR = "UPSTREAM_ERROR"
    TOOL_FAILED = "TOOL_FAILED"
    BAD_RESULT = "BAD_RESULT"
    CANCELLED = "CANCELLED"
    NOT_RECORDED = "NOT_RECORDED"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Row:
    """What each contract says of one reason."""

    stage: Stage
    sentence: str
    """For people: what happened, and what to do about it."""
    canonical: str
    """The envelope contract's code; its message and JSON-RPC code follow from it."""
    detail: str
    """`data.reason` in the envelope dialect, where the code alone says too little; else empty."""
    jsonrpc: int
    """The JSON-RPC code outside of the envelope contract: MCP's own, or ours beyond the range it reserves."""
    jsonrpc_message: str
    told_to_model_since: str
    """The MCP revision from which a tool call that ends so has a result for the model; empty for none."""
    http: int
    exit: int
    """Exit status of `portbook call`."""
    rest: str
    """`error.code` at `/execute`."""
    bare: str
    """The asset contract's reason; empty where the answer is JSON-RPC's own error there too."""
    bare_detail: str
    """What it says beside the reason: the detail, or the message of an error that has no finding."""
    is_retryable: bool = False
    """Whether the same call may end better another time; an ending may know better than its reason."""
    jsonrpc_before: tuple[str, int] | None = None
    """The first MCP revision that has `jsonrpc`, and the code of those before it, where they differ."""

    def code_in(self, revision: str) -> int:
        """Return the JSON-RPC code in an MCP revision; in none, the newest one's."""
        if self.jsonrpc_before is not None and revision and revision < self.jsonrpc_before[0]:
            return self.jsonrpc_before[1]
        return self.jsonrpc


REASONS: dict[Reason, Row] = {
    Reason.FRAME_TOO_LARGE: Row(
        Stage.FRAME, "The message is longer than 1 MiB. Send less in one message.",
        "INVALID_INPUT", "PAYLOAD_TOO_LARGE", -32600, "Invalid Request", "", 413, 2,
        "POLICY_VIOLATION", "validation_failed", "payload_too_large",
    ),
    Reason.FRAME_TOO_SLOW: Row(
        Stage.FRAME, "The message did not arrive in time. Send it again, faster.",
        "INVALID_INPUT", "FRAME_TOO_SLOW", -32600, "Invalid Request", "", 408, 2,
        "INVALID_INPUT", "", "", True,
    ),
    Reason.NOT_JSON_CONTENT: Row(
        Stage.FRAME, "The content type must be application/json.",
        "INVALID_INPUT", "NOT_JSON_CONTENT", -32600, "Invalid Request", "", 415, 2,
        "INVALID_INPUT", "", "",
    ),
    Reason.NOT_ACCEPTABLE: Row(
        Stage.FRAME, "The Accept header allows nothing that this answers with. Allow JSON and event streams.",
        "INVALID_INPUT", "NOT_ACCEPTABLE", -32600, "Invalid Request", "", 406, 2,
        "INVALID_INPUT", "", "",
    ),
    Reason.FOREIGN_HOST: Row(
        Stage.FRAME, "The Host or Origin is not this server's own: pages of other sites may not call tools.",
        "UNAUTHORIZED", "FOREIGN_HOST", -31403, "Forbidden", "", 403, 3,
        "UNAUTHORIZED", "", "",
    ),
    Reason.UNKNOWN_SESSION: Row(
        Stage.FRAME, "There is no such session, or no longer. Begin another with initialize.",
        "NOT_FOUND", "UNKNOWN_SESSION", -31404, "Unknown session", "", 404, 4,
        "NOT_FOUND", "", "",
    ),
    Reason.NOT_JSON: Row(
        Stage.PARSE, "The message is not strict JSON. The violation says what is wrong with it.",
        "INVALID_INPUT", "NOT_JSON", -32700, "Parse error", "", 400, 2,
        "INVALID_INPUT", "", "",
    ),
    Reason.NOT_JSONRPC: Row(
        Stage.CLASSIFY, "The message breaks JSON-RPC 2.0, or comes at the wrong time. Mend what is named.",
        "INVALID_INPUT", "NOT_JSONRPC", -32600, "Invalid Request", "", 400, 2,
        "INVALID_INPUT", "", "",
    ),
    Reason.UNKNOWN_METHOD: Row(
        Stage.CLASSIFY, "There is no such method here, or not in this revision.",
        "NOT_FOUND", "UNKNOWN_METHOD", -32601, "Method not found", "", 404, 4,
        "NOT_FOUND", "unsupported", "tool not implemented",
    ),
    Reason.ID_IN_USE: Row(
        Stage.CLASSIFY, "Another request with this id is still under way. Give each one an id of its own.",
        "INVALID_INPUT", "ID_IN_USE", -32600, "Invalid Request", "", 400, 2,
        "INVALID_INPUT", "", "",
    ),
    Reason.UNSUPPORTED_REVISION: Row(
        Stage.CLASSIFY, "The protocol revision named is not spoken here. Choose one that is supported.",
        "INVALID_INPUT", "UNSUPPORTED_REVISION", -32022, "Unsupported protocol version", "", 400, 2,
        "INVALID_INPUT", "", "",
    ),
    Reason.HEADER_MISMATCH: Row(
        Stage.CLASSIFY, "A header is missing, or does not say what the body says. Send both alike.",
        "INVALID_INPUT", "HEADER_MISMATCH", -32020, "Header mismatch", "", 400, 2,
        "INVALID_INPUT", "", "",
    ),
    Reason.BAD_PARAMS: Row(
        Stage.READ, "These params are not allowed. Mend what the violations name.",
        "INVALID_INPUT", "BAD_PARAMS", -32602, "Invalid params", "", 400, 2,
        "INVALID_INPUT", "validation_failed", "invalid params",
    ),
    Reason.BAD_ENVELOPE: Row(
        Stage.READ, "The call's envelope breaks its contract. Mend what the violations name.",
        "INVALID_INPUT", "BAD_ENVELOPE", -32602, "Invalid params", "", 400, 2,
        "INVALID_INPUT", "validation_failed", "invalid params",
    ),
    Reason.UNAUTHORIZED: Row(
        Stage.AUTHENTICATE, "A valid key is needed: a bearer token over HTTP, PORTBOOK_KEY over STDIO.",
        "UNAUTHORIZED", "", -31401, "Unauthorized", "", 401, 3,
        "UNAUTHORIZED", "unsupported", "unauthorized",
    ),
    Reason.UNKNOWN_TOOL: Row(
        Stage.RESOLVE, "There is no such tool. `portbook tools` lists those that are served.",
        "NOT_FOUND", "", -32602, "Unknown tool", "", 404, 4,
        "NOT_FOUND", "unsupported", "tool not implemented",
    ),
    Reason.UNKNOWN_RESOURCE: Row(
        Stage.RESOLVE, "There is no such resource. List resources and templates for those there are.",
        "NOT_FOUND", "UNKNOWN_RESOURCE", -32602, "Resource not found", "", 404, 4,
        "NOT_FOUND", "unsupported", "unknown resource", False, ("2026-07-28", -32002),
    ),
    Reason.UNKNOWN_PROMPT: Row(
        Stage.RESOLVE, "There is no such prompt. List prompts for those there are.",
        "NOT_FOUND", "UNKNOWN_PROMPT", -32602, "Unknown prompt", "", 404, 4,
        "NOT_FOUND", "unsupported", "unknown prompt",
    ),
    Reason.UNKNOWN_TASK: Row(
        Stage.RESOLVE, "There is no such task, or no longer.",
        "NOT_FOUND", "UNKNOWN_TASK", -32602, "Unknown task", "", 404, 4,
        "NOT_FOUND", "unsupported", "unknown task",
    ),
    Reason.MISSING_CAPABILITY: Row(
        Stage.RESOLVE, "This needs something of the client that it does not declare. Declare it, if it can.",
        "INVALID_INPUT", "MISSING_CAPABILITY", -32021, "Missing required client capability", "", 400, 2,
        "INVALID_INPUT", "unsupported", "missing capability",
    ),
    Reason.POLICY_VIOLATION: Row(
        Stage.DECIDE, "The operator's policy does not allow this call. Do not repeat it as it is.",
        "UNAUTHORIZED", "POLICY_VIOLATION", -31403, "Forbidden", "2024-11-05", 403, 3,
        "POLICY_VIOLATION", "unsupported", "policy_violation",
    ),
    Reason.PAYLOAD_TOO_LARGE: Row(
        Stage.DECIDE, "The arguments are larger than policy allows. Send less in one call.",
        "INVALID_INPUT", "PAYLOAD_TOO_LARGE", -31413, "Payload too large", "2024-11-05", 413, 2,
        "POLICY_VIOLATION", "validation_failed", "payload_too_large",
    ),
    Reason.RATE_LIMITED: Row(
        Stage.DECIDE, "This caller makes more calls than policy allows. Wait, then try again.",
        "INTERNAL_ERROR", "RATE_LIMITED", -31429, "Too many requests", "2024-11-05", 429, 1,
        "RATE_LIMITED", "unsupported", "rate_limited", True,
    ),
    Reason.BAD_ARGUMENTS: Row(
        Stage.ARGUMENTS, "The arguments break the tool's input schema. Mend what the violations name.",
        "INVALID_INPUT", "BAD_ARGUMENTS", -32602, "Invalid params", "2025-11-25", 400, 2,
        "INVALID_INPUT", "validation_failed", "invalid params",
    ),
    Reason.APPROVAL_REQUIRED: Row(
        Stage.APPROVE,
        "An operator has to approve this call, with `portbook approvals` or at /approvals. "
        "Repeat it as it is once they have.",
        "UNAUTHORIZED", "APPROVAL_REQUIRED", -31428, "Approval required", "2024-11-05", 403, 3,
        "APPROVAL_REQUIRED", "unsupported", "approval_required", True,
    ),
    Reason.APPROVAL_DENIED: Row(
        Stage.APPROVE, "A person was asked about this call, and said no. Do not repeat it.",
        "UNAUTHORIZED", "APPROVAL_DENIED", -31403, "Forbidden", "2024-11-05", 403, 3,
        "POLICY_VIOLATION", "unsupported", "approval_denied",
    ),
    Reason.APPROVAL_REFUSED: Row(
        Stage.APPROVE, "This approval does not cover this call. Repeat it without approval_id to ask anew.",
        "UNAUTHORIZED", "APPROVAL_REFUSED", -31403, "Forbidden", "2024-11-05", 403, 3,
        "POLICY_VIOLATION", "unsupported", "approval_refused",
    ),
    Reason.APPROVAL_UNKNOWN: Row(
        Stage.APPROVE, "There is no such approval. `portbook approvals list` lists those there are.",
        "NOT_FOUND", "APPROVAL_UNKNOWN", -31404, "Unknown approval", "", 404, 4,
        "NOT_FOUND", "unsupported", "approval_unknown",
    ),
    Reason.APPROVAL_SETTLED: Row(
        Stage.APPROVE, "This approval can no longer be decided so. Look at what became of it.",
        "INVALID_INPUT", "APPROVAL_SETTLED", -31409, "Conflict", "", 409, 2,
        "INVALID_INPUT", "unsupported", "approval_settled",
    ),
    Reason.NO_ANSWER: Row(
        Stage.EXECUTE, "The tool asked its caller something, and got no answer that it can use.",
        "INTERNAL_ERROR", "NO_ANSWER", -31424, "No answer", "2024-11-05", 424, 1,
        "INTERNAL_ERROR", "backend_error", "no answer",
    ),
    Reason.STORE_UNUSABLE: Row(
        Stage.APPROVE, "Approvals and keys cannot be read or written now. Nothing ran; try again later.",
        "INTERNAL_ERROR", "STORE_UNUSABLE", -31503, "Store unusable", "2024-11-05", 503, 1,
        "INTERNAL_ERROR", "backend_error", "store_unusable", True,
    ),
    Reason.BUSY: Row(
        Stage.EXECUTE, "Every worker is taken by a call that does not end. Try again later.",
        "INTERNAL_ERROR", "BUSY", -31503, "Busy", "2024-11-05", 503, 1,
        "BUSY", "backend_error", "busy", True,
    ),
    Reason.TIMEOUT: Row(
        Stage.EXECUTE, "The tool did not answer before its deadline. It may have had effects.",
        "INTERNAL_ERROR", "TIMEOUT", -31504, "Timeout", "2024-11-05", 504, 1,
        "TIMEOUT", "backend_error", "timeout", True,
    ),
    Reason.UPSTREAM_ERROR: Row(
        Stage.EXECUTE, "The API behind the tool did not answer as it should. It may have had effects.",
        "INTERNAL_ERROR", "UPSTREAM_ERROR", -31502, "Upstream error", "2024-11-05", 502, 1,
        "UPSTREAM_ERROR", "backend_error", "upstream error",
    ),
    Reason.TOOL_FAILED: Row(
        Stage.EXECUTE, "The tool raised an exception. The record names its type and place.",
        "INTERNAL_ERROR", "", -32603, "Internal error", "2024-11-05", 500, 1,
        "INTERNAL_ERROR", "backend_error", "internal error",
    ),
    Reason.BAD_RESULT: Row(
        Stage.RESULT, "The tool's result breaks its output schema and was withheld. The record says where.",
        "INVALID_OUTPUT", "", -32603, "Invalid tool output", "", 502, 5,
        "INVALID_OUTPUT", "backend_error", "invalid result",
    ),
    Reason.CANCELLED: Row(
        Stage.EXECUTE, "The call was abandoned before it ended. It may have had effects.",
        "INTERNAL_ERROR", "CANCELLED", -32603, "Internal error", "", 500, 1,
        "INTERNAL_ERROR", "backend_error", "cancelled",
    ),
    Reason.NOT_RECORDED: Row(
        Stage.RECORD, "The record could not be written, so nothing is acknowledged. Look at the log folder.",
        "INTERNAL_ERROR", "NOT_RECORDED", -32603, "Internal error", "", 503, 1,
        "INTERNAL_ERROR", "backend_error", "not recorded",
    ),
    Reason.INTERNAL: Row(
        Stage.RECORD, "Something unforeseen happened inside Portbook. The record names its type and place.",
        "INTERNAL_ERROR", "", -32603, "Internal error", "", 500, 1,
        "INTERNAL_ERROR", "backend_error", "internal error",
    ),
}  # fmt: skip


class Ending(Exception):
    """A call's ending without a result: raised by a stage, then carried as a value."""

    def __init__(
        self,
        reason: Reason,
        findings: tuple[Finding, ...] = (),
        note: str | None = None,
        details: Mapping[str, object] | None = None,
        *,
        is_retryable: bool | None = None,
    ) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.findings = findings
        self.note = note
        """For the record alone: a type and a place, never a value."""
        self.details: Mapping[str, object] = details or {}
        """What a contract wants told beside the findings."""
        self.is_retryable = self.row.is_retryable if is_retryable is None else is_retryable
        """Whether the same call may end better another time."""
        self.envelope: Mapping[str, object] | None = None
        """What happened as a result envelope, where one was asked for and the tool may have run."""

    @property
    def row(self) -> Row:
        """Return what the contracts say of this ending."""
        return REASONS[self.reason]


class Refused(Ending):
    """We said no; nothing ran."""


class Failed(Ending):
    """It ran, or may have run."""
