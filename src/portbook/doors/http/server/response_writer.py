"""The bytes of a response. Pure: no I/O."""

from __future__ import annotations

from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from portbook.doors.http.request import RequestHead
from portbook.doors.http.response import Reply, problem
from portbook.doors.http.server.head_parser import BadRequest

__all__ = [
    "CLOSE_LINE",
    "CONTINUE",
    "LAST_CHUNK",
    "NEW",
    "OLD",
    "bad_request",
    "chunk",
    "connection_line",
    "date_line",
    "document",
    "stream_head",
]

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_CODES: Final = {431: "PAYLOAD_TOO_LARGE", 501: "NOT_SUPPORTED", 505: "NOT_SUPPORTED"}

# The version of HTTP in which a connection closes unless both sides say otherwise.
OLD: Final = "1.0"
NEW: Final = "1.1"
CLOSE_LINE: Final = b"connection: close\r\n"
_KEEP_ALIVE_LINE: Final = b"connection: keep-alive\r\n"


def date_line(now_s: float) -> bytes:
    """Return the Date header of a time."""
    return b"date: %b\r\n" % formatdate(now_s, usegmt=True).encode()


@lru_cache(maxsize=1024)
def _length_line(length: int) -> bytes:
    """Return the last line of a head and its end; answers of one tool are about as long as each other."""
    return b"content-length: %d\r\n\r\n" % length


def document(reply: Reply, more: bytes, date: bytes, *, is_head: bool = False) -> bytes:
    """Return a whole response, with `more` headers; of one to HEAD, everything but the body."""
    status, lines, body, _, _ = reply
    # A 204 has no body, and so no length.
    length = _length_line(len(body)) if status != 204 else b"\r\n"
    return b"".join((_STATUS_LINES[status], date, lines, more, length, b"" if is_head else body))


def stream_head(reply: Reply, more: bytes, date: bytes, *, in_chunks: bool) -> bytes:
    """Return what comes before a body whose length is not known."""
    framing = b"transfer-encoding: chunked\r\n\r\n" if in_chunks else b"\r\n"
    return b"".join((_STATUS_LINES[reply.status], date, reply.lines, more, framing))


def chunk(data: bytes) -> bytes:
    """Return a piece of a body in chunks."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def bad_request(error: BadRequest, date: bytes) -> bytes:
    """Return the response to bytes that are not a request; the connection closes after it."""
    reply = problem(error.status, _CODES.get(error.status, "INVALID_INPUT"), error.sentence)
    return document(reply, CLOSE_LINE, date)


def connection_line(head: RequestHead, *, is_last: bool) -> bytes:
    """Return what a response says about its connection; nothing where the version of HTTP says it."""
    if is_last:
        return CLOSE_LINE
    return _KEEP_ALIVE_LINE if head.version == OLD else b""
