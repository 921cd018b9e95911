"""Reads requests from the bytes of one connection: head by head, body by body. Pure: no I/O.

It holds what has come and was not read yet. Its user bounds that by not feeding it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from portbook.doors.http.request import AUTHORITY, Headers, RequestHead
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, OVERSIZE, Frame

__all__ = [
    "FIELDS",
    "MAX_HEAD_BYTES",
    "MAX_REMEMBERED",
    "TOKEN_BYTES",
    "BadRequest",
    "ChunkedBody",
    "ParsedHead",
    "RequestReader",
    "decoded_path",
    "parse_head",
]

TOKEN_BYTES: Final = rb"!#$%&'*+.^_`|~0-9A-Za-z-"

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


# Parses the head of a request, strictly.
#
# A head that two readers could understand differently is refused, never repaired: bare line feeds, folded
# lines, white space before a colon, two lengths of a body, a length and chunks. So no proxy in front of
# this server and the server itself ever disagree about where a request ends (RFC 9112, 11.2).

# BadRequest: bytes that are not a request, or not one that is read here.


class BadRequest(Exception):
    """Bytes that are refused; what follows them on the connection is not read as a request."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


# Far more than clients send, tokens and cookies included.
MAX_HEAD_BYTES: Final = 65_536
_MAX_FIELDS: Final = 100

_NAME: Final = rb"[" + TOKEN_BYTES + rb"]"
_VALUE: Final = rb"[\t\x20-\x7e\x80-\xff]"

# Possessive, so that no input is tried in more than one way.
_REQUEST_LINE: Final = re.compile(rb"(" + _NAME + rb"{1,32}+) ([\x21-\x7e]++) HTTP/([0-9])\.([0-9])\r\n")
FIELDS: Final = re.compile(rb"(?:" + _NAME + rb"++:" + _VALUE + rb"*+\r\n)*+")
_FIELD: Final = re.compile(rb"([^:]+):([^\r]*)\r\n")

_ABSOLUTE: Final = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)

_SLASH: Final = re.compile("%2f", re.IGNORECASE)

# More digits are no length of anything.
_LENGTH: Final = re.compile(rb"[0-9]{1,18}")

# Clients send the same head again and again: it is parsed once, unless it is long enough to fill memory.
MAX_REMEMBERED: Final = 2048
_REMEMBERED: Final = 512


class ParsedHead(NamedTuple):
    """A head, and what it says about its message and its connection."""

    head: RequestHead
    length: int
    """The length of the body; 0 where it comes in chunks."""
    is_chunked: bool
    keeps_alive: bool
    """Whether the client may send a further request."""
    expects_continue: bool
    """Whether the client waits for a word before it sends the body."""


def parse_head(data: bytes) -> ParsedHead:
    """Return what a head says: everything up to its empty line, and that line.

    Raises `BadRequest` where it is not a head of HTTP/1.0 or HTTP/1.1.
    """
    return _remembered(data) if len(data) <= MAX_REMEMBERED else _parse(data)


def _parse(data: bytes) -> ParsedHead:
    line = _REQUEST_LINE.match(data)
    if line is None:
        raise BadRequest(400, "The first line is not one of HTTP: a method, a target and a version.")
    method, target, major, minor = line.groups()
    if major != b"1" or minor not in b"01":
        raise BadRequest(505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.")
    headers = _headers(data[line.end() : -2])
    path, query, authority = _split(target, method)
    if authority is not None:
        headers.append((AUTHORITY, authority))
    head = RequestHead(method.decode(), path, query, headers, f"1.{minor.decode()}")
    length, is_chunked = _framing(head)
    return ParsedHead(head, length, is_chunked, _keeps_alive(head), _expects_continue(head))


_remembered = lru_cache(maxsize=_REMEMBERED)(_parse)


def _headers(lines: bytes) -> Headers:
    if lines.count(b"\n") > _MAX_FIELDS:
        raise BadRequest(431, f"A request has at most {_MAX_FIELDS} headers.")
    if FIELDS.fullmatch(lines) is None:
        raise BadRequest(400, "A header is not a name, a colon and a value on one line.")
    return [(name.lower(), value.strip(b" \t")) for name, value in _FIELD.findall(lines)]


def _split(target: bytes, method: bytes) -> tuple[str, bytes, bytes | None]:
    """Return the path, the query and the host of a target; the host is None where it names none."""
    authority = None
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is not None:
        authority, target = absolute[1], absolute[2]
        if not target.startswith(b"/"):
            target = b"/" + target
    elif not target.startswith(b"/") and (method, target) != (b"OPTIONS", b"*"):
        raise BadRequest(400, "The target of a request is a path, or an http address.")
    if b"#" in target:
        raise BadRequest(400, "The target of a request has no fragment.")
    path, _, query = target.partition(b"?")
    return decoded_path(path.decode("ascii")), query, authority


def _framing(head: RequestHead) -> tuple[int, bool]:
    """Return the length of the body, and whether it comes in chunks."""
    length = head.fields.get(b"content-length")
    coding = head.fields.get(b"transfer-encoding")
    if coding is not None:
        if length is not None or head.version == "1.0":
            raise BadRequest(400, "A body in chunks has no Content-Length, and needs HTTP/1.1.")
        if coding.lower() != b"chunked":
            raise BadRequest(501, "The only Transfer-Encoding that is read is chunked.")
        return 0, True
    if length is None:
        return 0, False
    if _LENGTH.fullmatch(length) is None:
        raise BadRequest(400, "Content-Length is one whole number.")
    return int(length), False


def _keeps_alive(head: RequestHead) -> bool:
    tokens = {token.strip().lower() for token in head.fields.get(b"connection", b"").split(b",")}
    if head.version == "1.0":
        return b"keep-alive" in tokens and b"close" not in tokens
    return b"close" not in tokens


def _expects_continue(head: RequestHead) -> bool:
    expected = head.fields.get(b"expect")
    if expected is None or head.version == "1.0":  # RFC 9110, 10.1.1: of HTTP/1.0 it is ignored
        return False
    if expected.lower() != b"100-continue":
        raise BadRequest(417, "The only expectation that is met is 100-continue.")
    return True


def decoded_path(path: str) -> str:
    """Return a path with its escapes decoded once.

    All but those of a slash: it would be one more place where a path is split, and a rule of a proxy in front
    for a folder would not know it.
    """
    return "%2F".join(unquote(part) for part in _SLASH.split(path)) if "%" in path else path


# Reads a body that comes in chunks, strictly.
#
# Extensions of chunks are ignored. So are trailers: what stands behind a body is never a header.

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
