"""What goes back over HTTP: answers and problems, with headers such as Retry-After and X-Request-Id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from portbook.canonical import json_bytes
from portbook.dialects.rest_bodies import error_of
from portbook.doors.http.request import Headers
from portbook.errors import Refused
from portbook.model import Answer, JSONObject
from portbook.stages.state import CallState
from portbook.text.named_tuple import new_tuple
from portbook.wire.trace_context import traceparent_of

__all__ = [
    "JSON_LINES",
    "HeldRecords",
    "HeldReply",
    "Replied",
    "Reply",
    "Replying",
    "Write",
    "lines_of",
    "problem",
    "refusal",
    "reply_to",
]

_NO_STORE: Final = b"cache-control: no-store\r\n"
JSON_LINES: Final = b"content-type: application/json\r\n" + _NO_STORE

Write: TypeAlias = Callable[[bytes], Awaitable[None]]


class Reply(NamedTuple):
    """The response to one request: a document, or a stream."""

    status: int
    lines: bytes
    """All headers but those that frame the body, as they stand in the response."""
    body: bytes = b""
    stream: Callable[[Write], Awaitable[None]] | None = None
    """Writes the body piece by piece; it is cancelled if the client leaves."""
    closes: bool = False
    """Whether it is the last response on its connection."""


def lines_of(headers: Headers) -> bytes:
    """Return headers as they stand in a response."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def reply_to(answer: Answer, more: bytes = b"") -> Reply:
    """Return the response that carries an answer, with its own headers and `more`."""
    body, status, _, identity, retry_after_s, is_redacted = answer
    lines = JSON_LINES if body is not None else _NO_STORE
    if identity is not None:
        said = f"x-request-id: {identity.request}\r\ntraceparent: {traceparent_of(identity)}\r\n"
        lines += said.encode()
    if is_redacted:
        lines += b"portbook-redacted: true\r\n"
    if status == 401:
        lines += b"www-authenticate: Bearer\r\n"
    if retry_after_s is not None:
        lines += b"retry-after: %d\r\n" % retry_after_s
    # After 408 and 413 the rest of the message must not be read as a new request.
    return new_tuple(Reply, (status, lines + more, body or b"", None, status in (408, 413)))


class HeldRecords(Protocol):
    """Records that are not written yet."""

    def flush(self) -> None:
        """Write them. A call whose record cannot be written ends without a result."""
        ...


class HeldReply(NamedTuple):
    """The reply to a call that has ended, held back until the record of the call is written."""

    records: HeldRecords
    call: CallState
    worded: Callable[[Answer], Reply] = reply_to
    """Makes the reply of the answer to the call."""


Replying: TypeAlias = Coroutine[Any, Any, Reply]

# What a route returns: a reply, one that is held back, or what returns it once it is there.
Replied: TypeAlias = Reply | HeldReply | Replying


def problem(status: int, code: str, sentence: str, more: bytes = b"", *, closes: bool = False) -> Reply:
    """Return the response to a request that no route answers."""
    error: JSONObject = {
        "code": code,
        "message": sentence,
        "details": {},
        "retryable": status in (408, 503),
        "policy_violation": False,
    }
    return Reply(status, JSON_LINES + more, json_bytes({"error": error}), closes=closes)


def refusal(refused: Refused, more: bytes = b"") -> Reply:
    """Return the response to a request that is refused without a record."""
    return Reply(refused.row.http, JSON_LINES + more, json_bytes({"error": error_of(refused)}))
