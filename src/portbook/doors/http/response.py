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
from portbook.wire.trace_context import traceparent_of

__all__ = [
    "CLOSE",
    "JSON_HEADERS",
    "HeldRecords",
    "HeldReply",
    "Replied",
    "Reply",
    "Replying",
    "Write",
    "problem",
    "refusal",
    "reply_to",
]

JSON_HEADERS: Final[Headers] = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]

# The last response on its connection.
CLOSE: Final = (b"connection", b"close")

Write: TypeAlias = Callable[[bytes], Awaitable[None]]


class Reply(NamedTuple):
    """The response to one request: a document, or a stream."""

    status: int
    headers: Headers
    """All headers but those that frame the body."""
    body: bytes = b""
    stream: Callable[[Write], Awaitable[None]] | None = None
    """Writes the body piece by piece; it is cancelled if the client leaves."""


def reply_to(answer: Answer, more: Headers | None = None) -> Reply:
    """Return the response that carries an answer, with its own headers and `more`."""
    headers = _headers(answer)
    if more:
        headers += more
    return Reply(answer.status, headers, answer.body or b"")


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


def problem(status: int, code: str, sentence: str, more: Headers | None = None) -> Reply:
    """Return the response to a request that no route answers."""
    error: JSONObject = {
        "code": code,
        "message": sentence,
        "details": {},
        "retryable": status in (408, 503),
        "policy_violation": False,
    }
    return Reply(status, [*JSON_HEADERS, *(more or [])], json_bytes({"error": error}))


def refusal(refused: Refused, more: Headers | None = None) -> Reply:
    """Return the response to a request that is refused without a record."""
    return Reply(refused.row.http, [*JSON_HEADERS, *(more or [])], json_bytes({"error": error_of(refused)}))


def _headers(answer: Answer) -> Headers:
    headers = list(JSON_HEADERS) if answer.body is not None else JSON_HEADERS[1:]
    if answer.identity is not None:
        headers.append((b"x-request-id", answer.identity.request.encode()))
        headers.append((b"traceparent", traceparent_of(answer.identity).encode()))
    if answer.is_redacted:
        headers.append((b"portbook-redacted", b"true"))
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if answer.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % answer.retry_after_s))
    if answer.status in (408, 413):  # the rest of the message must not be read as a new request
        headers.append(CLOSE)
    return headers
