"""Parses the head of a request, strictly. Pure: no I/O.

A head that two readers could understand differently is refused, never repaired: bare line feeds, folded
lines, white space before a colon, two lengths of a body, a length and chunks. So no proxy in front of this
server and the server itself ever disagree about where a request ends (RFC 9112, 11.2).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from portbook.doors.http.request import AUTHORITY, Headers, RequestHead

__all__ = [
    "FIELDS",
    "MAX_HEAD_BYTES",
    "MAX_REMEMBERED",
    "TOKEN_BYTES",
    "BadRequest",
    "ParsedHead",
    "decoded_path",
    "parse_head",
]

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

TOKEN_BYTES: Final = rb"!#$%&'*+.^_`|~0-9A-Za-z-"
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
