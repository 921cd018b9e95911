"""The bytes of a response, and replies that wait until the records of their calls are written."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import monotonic
from typing import Final, Protocol

from portbook.doors.http.request import RequestHead
from portbook.doors.http.response import HeldReply, Reply, problem
from portbook.doors.http.server.request_parser import BadRequest

__all__ = [
    "CLOSE_LINE",
    "CONTINUE",
    "LAST_CHUNK",
    "NEW",
    "OLD",
    "AnsweredConnection",
    "HeldReplies",
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


# The calls that one turn of the event loop brought, on all connections: recorded together, then answered.
#
# Writing a record costs the system as much as a part of the call. So the calls that end in one turn of the
# loop share the writing: their records go out in one write for each stream, and only then their answers. A
# turn is cut short after 64 calls or 2 ms, so that slow calls do not hold back the answers to quick ones.

# As at the door of lines: a write costs as much as a tenth of a call.
_MOST: Final = 64
_MOST_S: Final = 0.002


class AnsweredConnection(Protocol):
    """A connection whose call has ended."""

    def release(self, held: HeldReply) -> None:
        """Send the reply, whose record is written."""
        ...


class HeldReplies:
    """The calls that have ended since the last answers were sent."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._held: list[tuple[AnsweredConnection, HeldReply]] = []
        self._is_ending = False
        self._until = 0.0
        self.is_full = False
        """Whether whoever adds replies should release them when it is done with one."""

    def add(self, connection: AnsweredConnection, held: HeldReply) -> None:
        """Answer a call at the end of the turn."""
        if not self._held:
            self._until = monotonic() + _MOST_S
            if not self._is_ending:
                self._is_ending = True
                self._loop.call_soon(self._end_turn)
        elif len(self._held) >= _MOST - 1 or monotonic() > self._until:
            self.is_full = True
        self._held.append((connection, held))

    def release(self) -> None:
        """Write the records that are held, then the answers."""
        held, self._held = self._held, []
        self.is_full = False
        for records in {reply.records for _, reply in held}:
            records.flush()
        for connection, reply in held:
            connection.release(reply)

    def _end_turn(self) -> None:
        self._is_ending = False
        self.release()
