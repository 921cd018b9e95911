"""The bytes of a response. Pure: no I/O."""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from portbook.doors.http.request import Headers, RequestHead
from portbook.doors.http.response import CLOSE, Reply, problem
from portbook.doors.http.server.bad_request import BadRequest

__all__ = [
    "CONTINUE",
    "LAST_CHUNK",
    "bad_request",
    "busy",
    "chunk",
    "connection_headers",
    "date_line",
    "document",
    "is_last",
    "stream_head",
]

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_CODES: Final = {431: "PAYLOAD_TOO_LARGE", 501: "NOT_SUPPORTED", 505: "NOT_SUPPORTED"}

_OLD: Final = "1.0"
_KEEP_ALIVE: Final = (b"connection", b"keep-alive")

# When a client that was turned away for lack of room may try again.
_RETRY_S: Final = b"1"


def date_line(now_s: float) -> bytes:
    """Return the Date header of a time."""
    return b"date: %b\r\n" % formatdate(now_s, usegmt=True).encode()


def document(reply: Reply, more: Headers, date: bytes, *, is_head: bool = False) -> bytes:
    """Return a whole response; of one to HEAD, everything but the body."""
    lines = _lines(reply, more, date)
    if reply.status != 204:  # a 204 has no body, and so no length
        lines.append(b"content-length: %d\r\n" % len(reply.body))
    lines.append(b"\r\n")
    if not is_head:
        lines.append(reply.body)
    return b"".join(lines)


def stream_head(reply: Reply, more: Headers, date: bytes, *, in_chunks: bool) -> bytes:
    """Return what comes before a body whose length is not known."""
    lines = _lines(reply, more, date)
    lines.append(b"transfer-encoding: chunked\r\n\r\n" if in_chunks else b"\r\n")
    return b"".join(lines)


def chunk(data: bytes) -> bytes:
    """Return a piece of a body in chunks."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def bad_request(error: BadRequest, date: bytes) -> bytes:
    """Return the response to bytes that are not a request; the connection closes after it."""
    reply = problem(error.status, _CODES.get(error.status, "INVALID_INPUT"), error.sentence)
    return document(reply, [CLOSE], date)


def busy(date: bytes) -> bytes:
    """Return the response to a client that there is no room for; the connection closes after it."""
    reply = problem(503, "BUSY", "The server is busy. Retry later.", [(b"retry-after", _RETRY_S)])
    return document(reply, [CLOSE], date)


def is_last(reply: Reply, more: Headers, head: RequestHead) -> bool:
    """Return whether a reply ends its connection: it says so, or only the end of the connection ends it."""
    is_said = CLOSE in reply.headers or CLOSE in more
    return is_said or (reply.stream is not None and head.version == _OLD)


def connection_headers(more: Headers, head: RequestHead, *, is_last: bool) -> Headers:
    """Return the headers beside those of a reply, with what they say about its connection."""
    if is_last:
        return more if CLOSE in more else [*more, CLOSE]
    return [*more, _KEEP_ALIVE] if head.version == _OLD else more


def _lines(reply: Reply, more: Headers, date: bytes) -> list[bytes]:
    lines = [_STATUS_LINES[reply.status], date]
    lines += [b"%b: %b\r\n" % header for header in reply.headers]
    lines += [b"%b: %b\r\n" % header for header in more if header != CLOSE or CLOSE not in reply.headers]
    return lines
