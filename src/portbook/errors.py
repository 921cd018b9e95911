"""The table of reasons: why a call did not succeed, and how each wire contract reports it.

Rules: every reason appears once; every column is filled (a test checks); error codes are written
nowhere else. Pure: no I/O.

The exceptions::

    Exception
      Ending              a reason, its findings, a note for the record without values
        Refused           the boundary refused the call: nothing ran
        Failed            the tool ran, or may have run
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypedDict

from portbook.text.named_tuple import NamedTuple

__all__ = [
    "REASONS",
    "BareReason",
    "Canonical",
    "CanonicalError",
    "Ending",
    "Failed",
    "Finding",
    "JSONRPCError",
    "McpError",
    "Reason",
    "Refused",
    "Row",
    "Stage",
]


class Finding(NamedTuple):
    """One violation: its place, the broken rule, and a message with the fix, without values."""

    pointer: str
    """RFC 6901 pointer into the validated document; the root is the empty string."""
    message: str
    keyword: str
    schema_pointer: str
    resource: str = ""
    """The `$id` of the schema that the schema pointer begins at; empty where nobody asks for it."""


class Stage(StrEnum):
    """The stage in which a reason arises."""

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
        """Return whether the sender can fix findings of this stage; those of later stages are the tool's."""
        return self not in (Stage.EXECUTE, Stage.RESULT, Stage.RECORD)


class _CanonicalErrorData(TypedDict):
    canonical_code: str


class JSONRPCError(TypedDict):
    """The error object of a canonical error in a JSON-RPC response."""

    code: int
    message: str
    data: _CanonicalErrorData


class _CanonicalRow(NamedTuple):
    http: int
    jsonrpc: int
    message: str


_CANONICAL = {
    "INVALID_INPUT": _CanonicalRow(400, -32602, "Invalid params"),
    "INVALID_OUTPUT": _CanonicalRow(502, -32002, "Invalid tool output"),
    "NOT_FOUND": _CanonicalRow(404, -32004, "Resource not found"),
    "UNAUTHORIZED": _CanonicalRow(401, -32001, "Unauthorized"),
    "INTERNAL_ERROR": _CanonicalRow(500, -32603, "Internal error"),
}


class CanonicalError:
    """The five codes of the envelope contract. Every method raises `KeyError` for an unknown code."""

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
        """Return a new JSON-RPC error object for `code`."""
        row = _CANONICAL[code]
        return {"code": row.jsonrpc, "message": row.message, "data": {"canonical_code": code}}


class Reason(StrEnum):
    """Why a call ended without a result."""

    FRAME_TOO_LARGE = "FRAME_TOO_LARGE"
    FRAME_TOO_SLOW = "FRAME_TOO_SLOW"
    NOT_JSON_CONTENT = "NOT_JSON_CONTENT"
    NOT_ACCEPTABLE = "NOT_ACCEPTABLE"
    BAD_HOST = "BAD_HOST"
    REPEATED_HEADER = "REPEATED_HEADER"
    FOREIGN_HOST = "FOREIGN_HOST"
    WRONG_HTTP_METHOD = "WRONG_HTTP_METHOD"
    UNKNOWN_SESSION = "UNKNOWN_SESSION"
    NOT_JSON = "NOT_JSON"
    NOT_JSONRPC = "NOT_JSONRPC"
    IGNORED = "IGNORED"
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
    TOOL_WITHHELD = "TOOL_WITHHELD"
    TOOL_QUARANTINED = "TOOL_QUARANTINED"
    MISSING_CAPABILITY = "MISSING_CAPABILITY"
    POLICY_VIOLATION = "POLICY_VIOLATION"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
    BAD_ARGUMENTS = "BAD_ARGUMENTS"
    BAD_ASSET = "BAD_ASSET"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    APPROVAL_DENIED = "APPROVAL_DENIED"
    APPROVAL_REFUSED = "APPROVAL_REFUSED"
    APPROVAL_UNKNOWN = "APPROVAL_UNKNOWN"
    APPROVAL_SETTLED = "APPROVAL_SETTLED"
    RECORD_UNKNOWN = "RECORD_UNKNOWN"
    UPSTREAM_UNKNOWN = "UPSTREAM_UNKNOWN"
    REVIEW_OUTDATED = "REVIEW_OUTDATED"
    REVIEW_BLOCKED = "REVIEW_BLOCKED"
    NO_ANSWER = "NO_ANSWER"
    STORE_UNUSABLE = "STORE_UNUSABLE"
    BACKEND_DISABLED = "BACKEND_DISABLED"
    BUSY = "BUSY"
    TOO_MANY_IN_FLIGHT = "TOO_MANY_IN_FLIGHT"
    TOO_MANY_STREAMS = "TOO_MANY_STREAMS"
    TIMEOUT = "TIMEOUT"
    UPSTREAM_ERROR = "UPSTREAM_ERROR"
    UPSTREAM_NOT_FOUND = "UPSTREAM_NOT_FOUND"
    UPSTREAM_DENIED = "UPSTREAM_DENIED"
    UPSTREAM_REJECTED = "UPSTREAM_REJECTED"
    TOOL_ERROR = "TOOL_ERROR"
    TOOL_FAILED = "TOOL_FAILED"
    BAD_RESULT = "BAD_RESULT"
    NOT_REDACTABLE = "NOT_REDACTABLE"
    CANCELLED = "CANCELLED"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    NOT_RECORDED = "NOT_RECORDED"
    INTERNAL = "INTERNAL"


class Canonical(NamedTuple):
    """The error in the envelope contract."""

    code: str
    """One of the five codes; its message, JSON-RPC code and HTTP status follow from it."""
    reason: str = ""
    """`data.reason`, where the code alone is not specific enough; otherwise empty."""


class McpError(NamedTuple):
    """The JSON-RPC error outside of the envelope contract."""

    code: int
    """A code of MCP, or one of Portbook's outside of the range that MCP reserves."""
    message: str
    before: tuple[str, int] | None = None
    """The first MCP revision that uses `code`, and the code of earlier revisions, where it differs."""

    def code_in(self, revision: str) -> int:
        """Return the code in an MCP revision; without a revision, that of the newest."""
        if self.before is not None and revision and revision < self.before[0]:
            return self.before[1]
        return self.code


class BareReason(NamedTuple):
    """The error in the asset contract."""

    reason: str
    detail: str
    """The `detail` beside the reason, or the message of an error without findings."""
    status: int | None = None
    """The `status` beside a backend_error; None for the HTTP status of the row."""


class Row(NamedTuple):
    """How each wire contract reports one reason. Tests list the reasons that rely on a default."""

    stage: Stage
    sentence: str
    """For people: what happened, then what to do."""
    canonical: Canonical
    mcp: McpError
    rest: str
    """`error.code` at `/execute`."""
    http: int
    exit: int
    """Exit status of `portbook call`."""
    if_not_executed: str = ""
    """What to do where nothing ran, if that differs: `sentence` then speaks of effects."""
    if_effects: str = ""
    """What comes before the advice where the tool ran and does not only read."""
    to_model_since: str = ""
    """The MCP revision since which such a tool call returns a result for the model; empty for never."""
    bare: BareReason | None = None
    """None where the asset contract also answers with a plain JSON-RPC error."""
    bare_if_unanswered: BareReason | None = None
    """The error in the asset contract where no response arrived, if that differs."""
    is_retryable: bool = False
    """Whether the same call may succeed later; an `Ending` can override it."""


REASONS: dict[Reason, Row] = {
    Reason.FRAME_TOO_LARGE: Row(
        stage=Stage.FRAME,
        sentence="The message is larger than 1 MiB. Send less in one message.",
        canonical=Canonical("INVALID_INPUT", reason="PAYLOAD_TOO_LARGE"),
        mcp=McpError(-32600, "Invalid Request"),
        bare=BareReason("validation_failed", "payload_too_large"),
        rest="POLICY_VIOLATION", http=413, exit=2,
    ),
    Reason.FRAME_TOO_SLOW: Row(
        stage=Stage.FRAME,
        sentence="The request body was not received in time. Retry.",
        canonical=Canonical("INVALID_INPUT", reason="FRAME_TOO_SLOW"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=408, exit=2, is_retryable=True,
    ),
    Reason.NOT_JSON_CONTENT: Row(
        stage=Stage.FRAME,
        sentence="The request body is not declared as JSON. Set the content type to application/json.",
        canonical=Canonical("INVALID_INPUT", reason="NOT_JSON_CONTENT"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=415, exit=2,
    ),
    Reason.NOT_ACCEPTABLE: Row(
        stage=Stage.FRAME,
        sentence=(
            "The Accept header does not allow the response. "
            "Accept application/json and text/event-stream."
        ),
        canonical=Canonical("INVALID_INPUT", reason="NOT_ACCEPTABLE"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=406, exit=2,
    ),
    Reason.BAD_HOST: Row(
        stage=Stage.FRAME,
        sentence="The request has no Host header, or several. Send exactly one Host header.",
        canonical=Canonical("INVALID_INPUT", reason="BAD_HOST"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.REPEATED_HEADER: Row(
        stage=Stage.FRAME,
        sentence="The request repeats a header of which one value counts. Send it once.",
        canonical=Canonical("INVALID_INPUT", reason="REPEATED_HEADER"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.FOREIGN_HOST: Row(
        stage=Stage.FRAME,
        sentence=(
            "The Host or Origin header names a different site. "
            "The operator can allow it in server.allowed_hosts or server.allowed_origins."
        ),
        canonical=Canonical("UNAUTHORIZED", reason="FOREIGN_HOST"),
        mcp=McpError(-31403, "Forbidden"),
        rest="UNAUTHORIZED", http=403, exit=3,
    ),
    Reason.WRONG_HTTP_METHOD: Row(
        stage=Stage.FRAME,
        sentence="This address takes no message by this HTTP method. The Allow header names the right ones.",
        canonical=Canonical("INVALID_INPUT", reason="WRONG_HTTP_METHOD"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=405, exit=2,
    ),
    Reason.UNKNOWN_SESSION: Row(
        stage=Stage.FRAME,
        sentence="This session does not exist or has expired. Start a new one with initialize.",
        canonical=Canonical("NOT_FOUND", reason="UNKNOWN_SESSION"),
        mcp=McpError(-31404, "Unknown session"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.NOT_JSON: Row(
        stage=Stage.PARSE,
        sentence="The message is not strict JSON. Fix the error listed under violations.",
        canonical=Canonical("INVALID_INPUT", reason="NOT_JSON"),
        mcp=McpError(-32700, "Parse error"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.NOT_JSONRPC: Row(
        stage=Stage.CLASSIFY,
        sentence=(
            "The message breaks JSON-RPC 2.0 or comes at the wrong time. "
            "Fix the fields listed under violations."
        ),
        canonical=Canonical("INVALID_INPUT", reason="NOT_JSONRPC"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.IGNORED: Row(
        stage=Stage.CLASSIFY,
        sentence=(
            "The message refers to nothing that is in progress, so it has no effect. "
            "Check the id or token that it names."
        ),
        canonical=Canonical("INVALID_INPUT", reason="IGNORED"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.UNKNOWN_METHOD: Row(
        stage=Stage.CLASSIFY,
        sentence="The server has no such method in this protocol revision. Check the method name.",
        canonical=Canonical("NOT_FOUND", reason="UNKNOWN_METHOD"),
        mcp=McpError(-32601, "Method not found"),
        bare=BareReason("unsupported", "tool not implemented"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.ID_IN_USE: Row(
        stage=Stage.CLASSIFY,
        sentence="A request with this id is still in progress. Use a new id for each request.",
        canonical=Canonical("INVALID_INPUT", reason="ID_IN_USE"),
        mcp=McpError(-32600, "Invalid Request"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.UNSUPPORTED_REVISION: Row(
        stage=Stage.CLASSIFY,
        sentence="The server does not support this protocol revision. Choose one listed under supported.",
        canonical=Canonical("INVALID_INPUT", reason="UNSUPPORTED_REVISION"),
        mcp=McpError(-32022, "Unsupported protocol version"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.HEADER_MISMATCH: Row(
        stage=Stage.CLASSIFY,
        sentence="A header is missing or differs from the message or the session. Fix the header.",
        canonical=Canonical("INVALID_INPUT", reason="HEADER_MISMATCH"),
        mcp=McpError(-32020, "Header mismatch"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.BAD_PARAMS: Row(
        stage=Stage.READ,
        sentence="The params are invalid. Fix the fields listed under violations.",
        canonical=Canonical("INVALID_INPUT", reason="BAD_PARAMS"),
        mcp=McpError(-32602, "Invalid params"),
        bare=BareReason("validation_failed", "invalid params"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.BAD_ENVELOPE: Row(
        stage=Stage.READ,
        sentence="The call's envelope breaks its contract. Fix the fields listed under violations.",
        canonical=Canonical("INVALID_INPUT", reason="BAD_ENVELOPE"),
        mcp=McpError(-32602, "Invalid params"),
        bare=BareReason("validation_failed", "invalid params"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.UNAUTHORIZED: Row(
        stage=Stage.AUTHENTICATE,
        sentence=(
            "The call needs a valid key. "
            "Send it as a bearer token over HTTP, or set PORTBOOK_KEY for STDIO."
        ),
        canonical=Canonical("UNAUTHORIZED"),
        mcp=McpError(-31401, "Unauthorized"),
        bare=BareReason("unsupported", "unauthorized"),
        rest="UNAUTHORIZED", http=401, exit=3,
    ),
    Reason.UNKNOWN_TOOL: Row(
        stage=Stage.RESOLVE,
        sentence="The server has no such tool. List its tools with tools/list or `portbook tools`.",
        canonical=Canonical("NOT_FOUND"),
        mcp=McpError(-32602, "Unknown tool"),
        bare=BareReason("unsupported", "tool not implemented"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.UNKNOWN_RESOURCE: Row(
        stage=Stage.RESOLVE,
        sentence=(
            "The server has no such resource. "
            "List them with resources/list and resources/templates/list."
        ),
        canonical=Canonical("NOT_FOUND", reason="UNKNOWN_RESOURCE"),
        mcp=McpError(-32602, "Resource not found", before=("2026-07-28", -32002)),
        bare=BareReason("unsupported", "unknown resource"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.UNKNOWN_PROMPT: Row(
        stage=Stage.RESOLVE,
        sentence="The server has no such prompt. List its prompts with prompts/list.",
        canonical=Canonical("NOT_FOUND", reason="UNKNOWN_PROMPT"),
        mcp=McpError(-32602, "Unknown prompt"),
        bare=BareReason("unsupported", "unknown prompt"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.UNKNOWN_TASK: Row(
        stage=Stage.RESOLVE,
        sentence="This task does not exist or has expired. Check the task id.",
        canonical=Canonical("NOT_FOUND", reason="UNKNOWN_TASK"),
        mcp=McpError(-32602, "Unknown task"),
        bare=BareReason("unsupported", "unknown task"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.TOOL_WITHHELD: Row(
        stage=Stage.RESOLVE,
        sentence=(
            "The tool is withheld: its definition is not approved, or has changed since it was. "
            "The operator can look at the difference and approve it with `portbook review`."
        ),
        canonical=Canonical("UNAUTHORIZED", reason="TOOL_WITHHELD"),
        mcp=McpError(-31403, "Forbidden"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "tool_withheld"),
        rest="POLICY_VIOLATION", http=403, exit=3,
    ),
    Reason.TOOL_QUARANTINED: Row(
        stage=Stage.RESOLVE,
        sentence=(
            "The tool is withheld: its definition looks like an attack on the model. "
            "The operator can read the findings and decide with `portbook review --force`."
        ),
        canonical=Canonical("UNAUTHORIZED", reason="TOOL_QUARANTINED"),
        mcp=McpError(-31403, "Forbidden"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "tool_quarantined"),
        rest="POLICY_VIOLATION", http=403, exit=3,
    ),
    Reason.MISSING_CAPABILITY: Row(
        stage=Stage.RESOLVE,
        sentence=(
            "The client has not declared a capability this call needs. "
            "Declare it if the client supports it."
        ),
        canonical=Canonical("INVALID_INPUT", reason="MISSING_CAPABILITY"),
        mcp=McpError(-32021, "Missing required client capability"),
        bare=BareReason("unsupported", "missing capability"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.POLICY_VIOLATION: Row(
        stage=Stage.DECIDE,
        sentence="The operator's policy does not allow this call. Do not retry it unchanged.",
        canonical=Canonical("UNAUTHORIZED", reason="POLICY_VIOLATION"),
        mcp=McpError(-31403, "Forbidden"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "policy_violation"),
        rest="POLICY_VIOLATION", http=403, exit=3,
    ),
    Reason.PAYLOAD_TOO_LARGE: Row(
        stage=Stage.DECIDE,
        sentence="The arguments are larger than the policy allows. Send less in one call.",
        canonical=Canonical("INVALID_INPUT", reason="PAYLOAD_TOO_LARGE"),
        mcp=McpError(-31413, "Payload too large"), to_model_since="2024-11-05",
        bare=BareReason("validation_failed", "payload_too_large"),
        rest="POLICY_VIOLATION", http=413, exit=2,
    ),
    Reason.RATE_LIMITED: Row(
        stage=Stage.DECIDE,
        sentence="The caller has exceeded a rate limit. Wait, then retry.",
        canonical=Canonical("INTERNAL_ERROR", reason="RATE_LIMITED"),
        mcp=McpError(-31429, "Too many requests"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "rate_limited"),
        rest="RATE_LIMITED", http=429, exit=1, is_retryable=True,
    ),
    Reason.BAD_ARGUMENTS: Row(
        stage=Stage.ARGUMENTS,
        sentence=(
            "The arguments do not match the tool's input schema. "
            "Fix the fields listed under violations."
        ),
        canonical=Canonical("INVALID_INPUT", reason="BAD_ARGUMENTS"),
        mcp=McpError(-32602, "Invalid params"), to_model_since="2025-11-25",
        bare=BareReason("validation_failed", "invalid params"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.BAD_ASSET: Row(
        stage=Stage.ARGUMENTS,
        sentence=(
            "The asset is not valid and was not sent. "
            "Fix the places of the asset listed under violations."
        ),
        canonical=Canonical("INVALID_INPUT", reason="BAD_ASSET"),
        mcp=McpError(-32602, "Invalid params"), to_model_since="2024-11-05",
        bare=BareReason("validation_failed", "invalid asset"),
        rest="INVALID_INPUT", http=400, exit=2,
    ),
    Reason.APPROVAL_REQUIRED: Row(
        stage=Stage.APPROVE,
        sentence=(
            "An operator has to approve this call, with `portbook approvals` or at /approvals. "
            "Repeat the same call once it is approved."
        ),
        canonical=Canonical("UNAUTHORIZED", reason="APPROVAL_REQUIRED"),
        mcp=McpError(-31428, "Approval required"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "approval_required"),
        rest="APPROVAL_REQUIRED", http=403, exit=3, is_retryable=True,
    ),
    Reason.APPROVAL_DENIED: Row(
        stage=Stage.APPROVE,
        sentence="A person was asked to approve this call and denied it. Do not repeat it.",
        canonical=Canonical("UNAUTHORIZED", reason="APPROVAL_DENIED"),
        mcp=McpError(-31403, "Forbidden"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "approval_denied"),
        rest="POLICY_VIOLATION", http=403, exit=3,
    ),
    Reason.APPROVAL_REFUSED: Row(
        stage=Stage.APPROVE,
        sentence=(
            "This approval does not cover this call. "
            "Repeat the call without approval_id to request a new one."
        ),
        canonical=Canonical("UNAUTHORIZED", reason="APPROVAL_REFUSED"),
        mcp=McpError(-31403, "Forbidden"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "approval_refused"),
        rest="POLICY_VIOLATION", http=403, exit=3,
    ),
    Reason.APPROVAL_UNKNOWN: Row(
        stage=Stage.APPROVE,
        sentence="This approval does not exist. List approvals with `portbook approvals list`.",
        canonical=Canonical("NOT_FOUND", reason="APPROVAL_UNKNOWN"),
        mcp=McpError(-31404, "Unknown approval"),
        bare=BareReason("unsupported", "approval_unknown"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.APPROVAL_SETTLED: Row(
        stage=Stage.APPROVE,
        sentence="This approval has already been decided or has expired. See `portbook approvals show ID`.",
        canonical=Canonical("INVALID_INPUT", reason="APPROVAL_SETTLED"),
        mcp=McpError(-31409, "Conflict"),
        bare=BareReason("unsupported", "approval_settled"),
        rest="INVALID_INPUT", http=409, exit=2,
    ),
    Reason.RECORD_UNKNOWN: Row(
        stage=Stage.RESOLVE,
        sentence="There is no record of this call. Older ones may have been pruned (`audit.keep`).",
        canonical=Canonical("NOT_FOUND", reason="RECORD_UNKNOWN"),
        mcp=McpError(-31404, "Unknown record"),
        bare=BareReason("unsupported", "record_unknown"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.UPSTREAM_UNKNOWN: Row(
        stage=Stage.RESOLVE,
        sentence="There is no MCP server of this name. List them with `portbook upstreams`.",
        canonical=Canonical("NOT_FOUND", reason="UPSTREAM_UNKNOWN"),
        mcp=McpError(-31404, "Unknown server"),
        bare=BareReason("unsupported", "upstream_unknown"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.REVIEW_OUTDATED: Row(
        stage=Stage.APPROVE,
        sentence=(
            "The definition is no longer what was shown, or is no longer withheld. "
            "Load what is withheld again, and decide on that."
        ),
        canonical=Canonical("INVALID_INPUT", reason="REVIEW_OUTDATED"),
        mcp=McpError(-31409, "Conflict"),
        bare=BareReason("unsupported", "review_outdated"),
        rest="INVALID_INPUT", http=409, exit=2,
    ),
    Reason.REVIEW_BLOCKED: Row(
        stage=Stage.APPROVE,
        sentence=(
            "The settings or the scan block this definition. "
            "Read it again; to approve it all the same, force the review."
        ),
        canonical=Canonical("INVALID_INPUT", reason="REVIEW_BLOCKED"),
        mcp=McpError(-31409, "Conflict"),
        bare=BareReason("unsupported", "review_blocked"),
        rest="INVALID_INPUT", http=409, exit=2,
    ),
    Reason.NO_ANSWER: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The tool asked the client a question and got no usable answer. "
            "Check that the client can answer."
        ),
        canonical=Canonical("INTERNAL_ERROR", reason="NO_ANSWER"),
        mcp=McpError(-31424, "No answer"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "no answer"),
        rest="INTERNAL_ERROR", http=424, exit=1,
    ),
    Reason.STORE_UNUSABLE: Row(
        stage=Stage.APPROVE,
        sentence="The store of approvals and keys is unavailable, so nothing ran. Retry later.",
        canonical=Canonical("INTERNAL_ERROR", reason="STORE_UNUSABLE"),
        mcp=McpError(-31503, "Store unusable"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "store_unusable"),
        rest="INTERNAL_ERROR", http=503, exit=1, is_retryable=True,
    ),
    Reason.BACKEND_DISABLED: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The server has no backend to send assets to. "
            "The operator sets its address with SYN_BACKEND_URL or assets.backend_url."
        ),
        canonical=Canonical("INTERNAL_ERROR", reason="BACKEND_DISABLED"),
        mcp=McpError(-31501, "Not implemented"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "backend disabled"),
        rest="INTERNAL_ERROR", http=501, exit=1,
    ),
    Reason.BUSY: Row(
        stage=Stage.EXECUTE,
        sentence="Every worker is occupied by a call that has not ended. Retry later.",
        canonical=Canonical("INTERNAL_ERROR", reason="BUSY"),
        mcp=McpError(-31503, "Busy"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "busy"),
        rest="BUSY", http=503, exit=1, is_retryable=True,
    ),
    Reason.TOO_MANY_IN_FLIGHT: Row(
        stage=Stage.EXECUTE,
        sentence="Too many requests or tasks are in progress. Wait for some of them to end, or cancel them.",
        canonical=Canonical("INTERNAL_ERROR", reason="TOO_MANY_IN_FLIGHT"),
        mcp=McpError(-31503, "Too many in flight"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "too_many_in_flight"),
        rest="BUSY", http=503, exit=1, is_retryable=True,
    ),
    Reason.TOO_MANY_STREAMS: Row(
        stage=Stage.EXECUTE,
        sentence="Too many streams are open. Close some of them, then retry.",
        canonical=Canonical("INTERNAL_ERROR", reason="TOO_MANY_STREAMS"),
        mcp=McpError(-31503, "Too many streams"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "too_many_streams"),
        rest="BUSY", http=503, exit=1, is_retryable=True,
    ),
    Reason.TIMEOUT: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The tool did not answer before its deadline. "
            "Check whether it had effects before you retry."
        ),
        if_not_executed="Nothing was sent, so there were no effects.",
        canonical=Canonical("INTERNAL_ERROR", reason="TIMEOUT"),
        mcp=McpError(-31504, "Timeout"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "timeout"),
        rest="TIMEOUT", http=504, exit=1, is_retryable=True,
    ),
    Reason.UPSTREAM_ERROR: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The API or server behind the tool failed or sent an unusable answer. "
            "Check whether it had effects before you retry."
        ),
        if_not_executed="Nothing was sent, so there were no effects.",
        canonical=Canonical("INTERNAL_ERROR", reason="UPSTREAM_ERROR"),
        mcp=McpError(-31502, "Upstream error"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "invalid_response"),
        bare_if_unanswered=BareReason("backend_error", "network_unreachable", 503),
        rest="UPSTREAM_ERROR", http=502, exit=1,
    ),
    Reason.UPSTREAM_NOT_FOUND: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The API behind the tool found nothing for these arguments. "
            "Check the names and ids among them."
        ),
        canonical=Canonical("NOT_FOUND", reason="UPSTREAM_NOT_FOUND"),
        mcp=McpError(-31404, "Not found upstream"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "not found"),
        rest="NOT_FOUND", http=404, exit=4,
    ),
    Reason.UPSTREAM_DENIED: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The API behind the tool did not accept the credentials that the operator set for it. "
            "The operator has to check them and what they permit."
        ),
        canonical=Canonical("INTERNAL_ERROR", reason="UPSTREAM_DENIED"),
        mcp=McpError(-31502, "Upstream credentials"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "credentials not accepted"),
        rest="UPSTREAM_ERROR", http=502, exit=1,
    ),
    Reason.UPSTREAM_REJECTED: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The API behind the tool rejected the request. "
            "Change the arguments; after a conflict, look at the present state first. "
            "upstream_body says why, if the API explained it."
        ),
        canonical=Canonical("INVALID_INPUT", reason="UPSTREAM_REJECTED"),
        mcp=McpError(-31422, "Rejected upstream"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "request rejected"),
        rest="UPSTREAM_ERROR", http=422, exit=2,
    ),
    Reason.TOOL_ERROR: Row(
        stage=Stage.EXECUTE,
        sentence="The tool reported an error of its own. Its message or code says what to do.",
        canonical=Canonical("INTERNAL_ERROR", reason="TOOL_ERROR"),
        mcp=McpError(-31422, "Tool error"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "tool error"),
        rest="TOOL_ERROR", http=422, exit=1,
    ),
    Reason.TOOL_FAILED: Row(
        stage=Stage.EXECUTE,
        sentence="The tool raised an exception. The operator finds its type and place in the record.",
        canonical=Canonical("INTERNAL_ERROR"),
        mcp=McpError(-32603, "Internal error"), to_model_since="2024-11-05",
        bare=BareReason("backend_error", "internal error"),
        rest="INTERNAL_ERROR", http=500, exit=1,
    ),
    Reason.BAD_RESULT: Row(
        stage=Stage.RESULT,
        sentence=(
            "The tool's result breaks its output schema or its protocol, and was withheld. "
            "The operator finds the violations in the record."
        ),
        if_effects="The call ran; check its effects before you retry.",
        canonical=Canonical("INVALID_OUTPUT"),
        mcp=McpError(-32603, "Invalid tool output"),
        bare=BareReason("backend_error", "invalid result"),
        rest="INVALID_OUTPUT", http=502, exit=5,
    ),
    Reason.NOT_REDACTABLE: Row(
        stage=Stage.RESULT,
        sentence=(
            "The document holds a secret at this pointer and must not be altered, so it is not given. "
            "The operator can remove the secret, or set assets.redact to off."
        ),
        canonical=Canonical("UNAUTHORIZED", reason="NOT_REDACTABLE"),
        mcp=McpError(-31403, "Forbidden"), to_model_since="2024-11-05",
        bare=BareReason("unsupported", "redacted"),
        rest="POLICY_VIOLATION", http=403, exit=3,
    ),
    Reason.CANCELLED: Row(
        stage=Stage.EXECUTE,
        sentence="The call was cancelled before it ended. Check whether it had effects before you retry.",
        if_not_executed="It had not started, so there were no effects.",
        canonical=Canonical("INTERNAL_ERROR", reason="CANCELLED"),
        mcp=McpError(-32603, "Internal error"),
        bare=BareReason("backend_error", "cancelled"),
        rest="INTERNAL_ERROR", http=500, exit=1,
    ),
    Reason.OUTCOME_UNKNOWN: Row(
        stage=Stage.EXECUTE,
        sentence=(
            "The process that ran the call has ended, so its outcome is unknown. "
            "Find out what it did before you retry."
        ),
        canonical=Canonical("INTERNAL_ERROR", reason="OUTCOME_UNKNOWN"),
        mcp=McpError(-32603, "Internal error"),
        bare=BareReason("backend_error", "outcome unknown"),
        rest="INTERNAL_ERROR", http=500, exit=1,
    ),
    Reason.NOT_RECORDED: Row(
        stage=Stage.RECORD,
        sentence=(
            "The record of this call could not be written, so no result is returned. "
            "The operator has to check the log folder."
        ),
        canonical=Canonical("INTERNAL_ERROR", reason="NOT_RECORDED"),
        mcp=McpError(-32603, "Internal error"),
        bare=BareReason("backend_error", "not recorded"),
        rest="INTERNAL_ERROR", http=503, exit=1,
    ),
    Reason.INTERNAL: Row(
        stage=Stage.RECORD,
        sentence=(
            "An unexpected error occurred inside Portbook. "
            "The operator finds its type and place in the record."
        ),
        canonical=Canonical("INTERNAL_ERROR"),
        mcp=McpError(-32603, "Internal error"),
        bare=BareReason("backend_error", "internal error"),
        rest="INTERNAL_ERROR", http=500, exit=1,
    ),
}  # fmt: skip


_ONLY_READS: Final = "The tool only reads, so there were no effects."


class Ending(Exception):
    """The end of a call without a result: raised by a stage, then passed on as a value."""

    def __init__(
        self,
        reason: Reason,
        findings: tuple[Finding, ...] = (),
        note: str | None = None,
        details: Mapping[str, object] | None = None,
        *,
        happened: str | None = None,
        is_retryable: bool | None = None,
    ) -> None:
        """End a call; `happened` is a clause of ours that its sentence, `details` and the note have."""
        super().__init__(reason.value)
        self.reason = reason
        self.findings = findings
        self.note = note or happened
        """For the record only: a type and a place, never a value."""
        self.happened = happened
        """What happened in this case, such as `the connection was refused`; never a value."""
        self.details: Mapping[str, object] = details or {}
        """Further members that a wire contract reports beside the findings."""
        if happened is not None:
            self.details = {"happened": happened, **self.details}
        self.is_retryable = self.row.is_retryable if is_retryable is None else is_retryable
        """Whether the same call may succeed later."""
        self.only_read = False
        """Whether the tool only reads, so that nothing can have changed."""
        self.difference: Mapping[str, object] | None = None
        """For the record only: how a withheld definition differs from the approved one."""
        self.envelope: Mapping[str, object] | None = None
        """The result envelope, where one was requested and the tool may have run."""

    @property
    def row(self) -> Row:
        """Return the row of this reason."""
        return REASONS[self.reason]

    @property
    def sentence(self) -> str:
        """Return the sentence for people: what happened, then what to do.

        Only a call that ran, or may have run, and that does not only read, is told to check for effects.
        """
        row = self.row
        what, _, advice = row.sentence.partition(". ")
        if self.happened is not None:
            what = f"{what}: {self.happened}"
        if row.if_not_executed and isinstance(self, Refused):
            advice = row.if_not_executed
        elif row.if_not_executed and self.only_read:
            advice = _ONLY_READS
        elif row.if_effects and not self.only_read:
            advice = f"{row.if_effects} {advice}"
        return f"{what}. {advice}"


class Refused(Ending):
    """The boundary refused the call; nothing ran."""


class Failed(Ending):
    """A call that ended without a result although its tool ran, or may have run; `reason` says why."""
