"""Reads a body that comes in chunks, strictly. Pure: no I/O.

Extensions of chunks are ignored. So are trailers: what stands behind a body is never a header.
"""

from __future__ import annotations

import re
from typing import Final

from portbook.doors.http.server.head_parser import FIELDS, BadRequest

__all__ = ["ChunkedBody"]

_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,8}+)(?:;[\t\x20-\x7e\x80-\xff]*+)?\r\n")

# The longest line before a chunk, and all trailers: nothing that a client means to send is longer.
_MAX_LINE: Final = 256
_MAX_TRAILERS: Final = 8192


class ChunkedBody:
    """The body of one request, as far as it has come."""

    __slots__ = ("_ends_chunk", "_left", "_max_bytes", "content", "is_trailing", "size")

    def __init__(self, max_bytes: int) -> None:
        """Keep up to `max_bytes` of content; a longer body is read no further."""
        self._max_bytes = max_bytes
        self._left: int = 0
        self._ends_chunk = False
        self.is_trailing = False
        self.content = bytearray()
        self.size = 0
        """The bytes of content so far."""

    def read(self, data: bytes, start: int) -> tuple[int, bool]:
        """Read from `start` on; return up to where it was read, and whether the body has ended there.

        Raises `BadRequest` where this is not a body in chunks.
        """
        at = start
        while not self.is_trailing:
            if self._left:
                piece = data[at : at + self._left]
                self._add(piece)
                at += len(piece)
                if self._left:
                    return at, False
            if self._ends_chunk:
                if len(data) - at < 2:
                    return at, False
                if data[at : at + 2] != b"\r\n":
                    raise BadRequest(400, "A chunk is longer than its size says.")
                at += 2
                self._ends_chunk = False
            size = _size_line(data, at)
            if size is None:
                return at, False
            at, self._left = size
            if self.size + self._left > self._max_bytes:
                self.size += self._left  # what is announced is too much, whether it comes or not
                self.content.clear()
                return at, False
            self._ends_chunk = self._left > 0
            self.is_trailing = self._left == 0
        return _after_trailers(data, at)

    def _add(self, piece: bytes) -> None:
        self._left -= len(piece)
        self.size += len(piece)
        self.content += piece


def _size_line(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where the line with the size of a chunk ends, and the size; None while it has not come whole."""
    end = data.find(b"\n", at, at + _MAX_LINE)
    if end < 0:
        if len(data) - at >= _MAX_LINE:
            raise BadRequest(400, "The line with the size of a chunk is too long.")
        return None
    line = _SIZE_LINE.fullmatch(data, at, end + 1)
    if line is None:
        raise BadRequest(400, "A chunk does not begin with its size.")
    return end + 1, int(line[1], 16)


def _after_trailers(data: bytes, at: int) -> tuple[int, bool]:
    """Return where the trailers end, and True; where they have not come whole, `at` and False."""
    if data[at : at + 2] == b"\r\n":
        return at + 2, True
    end = data.find(b"\r\n\r\n", at, at + _MAX_TRAILERS)
    if end < 0:
        if len(data) - at >= _MAX_TRAILERS:
            raise BadRequest(431, "The trailers of the body are too long.")
        if re.search(rb"(?<!\r)\n", data[at:]):
            raise BadRequest(400, "A line of the trailers does not end in CRLF.")
        return at, False
    if FIELDS.fullmatch(data, at, end + 2) is None:
        raise BadRequest(400, "A trailer is not a name, a colon and a value on one line.")
    return end + 4, True
