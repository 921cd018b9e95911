"""Reads requests from the bytes of one connection: head by head, body by body. Pure: no I/O.

It holds what has come and was not read yet. Its user bounds that by not feeding it.
"""

from __future__ import annotations

import re
from typing import Final

from portbook.doors.http.server.chunked_body import ChunkedBody
from portbook.doors.http.server.head_parser import (
    MAX_HEAD_BYTES,
    MAX_REMEMBERED,
    TOKEN_BYTES,
    BadRequest,
    ParsedHead,
    parse_head,
)
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, OVERSIZE, Frame

__all__ = ["RequestReader"]

_END: Final = b"\r\n\r\n"
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
_STARTS_HEAD: Final = re.compile(rb"[" + TOKEN_BYTES + rb"]")


class RequestReader:
    """The bytes of one connection that are not read yet, and the message that is being read."""

    __slots__ = ("_at", "_body", "_chunks", "_data", "_known", "_left", "_parsed", "_searched", "is_clear")

    _parsed: ParsedHead

    def __init__(self) -> None:
        self._data = b""
        self._at: int = 0
        self._searched: int = 0
        self._left: int = 0
        self._body = bytearray()
        self._chunks: ChunkedBody | None = None
        self._known = b""  # the last head, which most clients send again
        self.is_clear = True
        """True where nothing is held, for certain: everything that came was read."""

    @property
    def knows_head(self) -> bool:
        """Return whether the last head is kept, because the client is likely to send it again."""
        return self._known != b""

    @property
    def unread_bytes(self) -> int:
        """Return how many bytes have come and are not read yet."""
        return len(self._data) - self._at

    @property
    def held_bytes(self) -> int:
        """Return how many bytes are held: those not read yet, and the part of a body that has come."""
        held = len(self._data) - self._at + len(self._body)
        return held if self._chunks is None else held + len(self._chunks.content)

    def begins_with(self, starts: tuple[bytes, ...]) -> bool:
        """Return whether what is not read yet begins with one of these."""
        return self._data.startswith(starts, self._at)

    @property
    def has_begun_body(self) -> bool:
        """Return whether a part of the body that is being read has come."""
        return bool(self._body) or (self._chunks is not None and self._chunks.size > 0)

    def feed(self, data: bytes) -> None:
        """Add bytes that have come."""
        if self.is_clear:
            self._data, self.is_clear = data, False
            return
        if self._at == len(self._data):
            self._data = data
        else:
            self._data = self._data[self._at :] + data
        self._searched -= self._at
        self._at = 0

    def read_head(self) -> ParsedHead | None:
        """Return the next head, None while it has not come whole.

        Raises `BadRequest` where it is not one.
        """
        data, start = self._data, self._at
        if self._known and data.startswith(self._known, start):
            self._at = self._searched = start + len(self._known)
            return self._begin(self._parsed)
        end = data.find(_END, max(start, self._searched - 3), start + MAX_HEAD_BYTES)
        if end < 0:
            self._check_unfinished(start)
            return None
        self._at = self._searched = end = end + 4
        head = data[start:end]
        parsed = parse_head(head)
        self._known = b""
        if len(head) <= MAX_REMEMBERED:
            self._known, self._parsed = head, parsed
        return self._begin(parsed)

    def _begin(self, parsed: ParsedHead) -> ParsedHead:
        """Begin the body of a request."""
        _, self._left, is_chunked, _, _ = parsed
        self._chunks = ChunkedBody(MAX_FRAME_BYTES) if is_chunked else None
        return parsed

    def read_body(self) -> Frame | None:
        """Return the body of the request whose head was read; None while it has not come whole.

        Raises `BadRequest` where its chunks are not chunks.
        """
        if self._chunks is not None:
            return self._read_chunks(self._chunks)
        if not self._body:
            if self._left > MAX_FRAME_BYTES:
                return OVERSIZE
            data, start = self._data, self._at
            end = start + self._left
            if end == len(data):  # nearly always: it came with its head, and nothing after it
                self._data, self._at, self._searched, self._left, self.is_clear = b"", 0, 0, 0, True
                return data[start:]
            if end < len(data):
                self._at, self._left = end, 0
                return data[start:end]
        part = self._data[self._at : self._at + self._left]
        self._at += len(part)
        self._left -= len(part)
        self._body += part
        self._drop_read()
        return self._whole() if not self._left else None

    def skip_body(self) -> bool:
        """Skip the body of the request whose head was read; return whether all of it had come.

        If not, nothing more can be read: where the next request begins is not known.
        """
        if self._chunks is not None:
            try:
                self._at, has_ended = self._chunks.read(self._data, self._at)
            except BadRequest:
                return False
            self._chunks = None
            self._drop_read()
            return has_ended
        self._at += self._left
        has_come = self._at <= len(self._data)
        self._drop_read()
        return has_come

    def clear(self) -> None:
        """Drop everything that has come."""
        self._data, self._at, self._searched = b"", 0, 0
        self._body.clear()
        self._chunks = None
        self.is_clear = True

    def _read_chunks(self, chunks: ChunkedBody) -> Frame | None:
        self._at, has_ended = chunks.read(self._data, self._at)
        self._drop_read()
        if chunks.size > MAX_FRAME_BYTES:
            return OVERSIZE
        if not has_ended:
            return None
        self._chunks = None
        return bytes(chunks.content)

    def _drop_read(self) -> None:
        """Keep nothing of what was read: a connection may be idle for long."""
        if self._at >= len(self._data):
            self._data, self._at, self._searched = b"", 0, 0

    def _whole(self) -> bytes:
        body = bytes(self._body)
        self._body.clear()
        return body

    def _check_unfinished(self, start: int) -> None:
        """Refuse early what can no longer become a head."""
        data = self._data
        if len(data) - start >= MAX_HEAD_BYTES:
            raise BadRequest(431, f"The head of a request has at most {MAX_HEAD_BYTES} bytes.")
        if len(data) > start and _STARTS_HEAD.match(data, start) is None:
            raise BadRequest(400, "This is not HTTP.")
        if _BARE_LF.search(data, max(start, self._searched)) is not None:
            raise BadRequest(400, "A line of the head does not end in CRLF.")
        self._searched = len(data)
