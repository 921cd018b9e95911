"""Heads: what one says, and what is none."""

from __future__ import annotations

import time

import pytest

from portbook.doors.http.request import AUTHORITY
from portbook.doors.http.server.request_parser import MAX_HEAD_BYTES, BadRequest, parse_head


def head(*lines: bytes, first: bytes = b"POST /mcp HTTP/1.1") -> bytes:
    return b"\r\n".join([first, b"Host: localhost", *lines, b"", b""])


def test_a_head_says_its_method_its_path_its_query_and_its_headers() -> None:
    parsed = parse_head(head(b"X-One:  a b \t", b"x-one:c", b"Empty:", first=b"GET /a%20b?q=%20 HTTP/1.1"))
    found = parsed.head
    assert (found.method, found.path, found.query, found.version) == ("GET", "/a b", b"q=%20", "1.1")
    assert found.headers == [(b"host", b"localhost"), (b"x-one", b"a b"), (b"x-one", b"c"), (b"empty", b"")]
    assert (parsed.length, parsed.is_chunked, parsed.keeps_alive) == (0, False, True)


@pytest.mark.parametrize(
    ("target", "path", "authority"),
    [
        (b"/a//b/../c", "/a//b/../c", None),
        (b"/%2e%2e/x", "/../x", None),
        (b"//evil.test/mcp", "//evil.test/mcp", None),
        (b"http://h:1/x?y", "/x", b"h:1"),
        (b"HTTPS://h", "/", b"h"),
        (b"http://h?y", "/", b"h"),
        (b"/x%2Fy", "/x%2Fy", None),
        (b"/%78%2fy%20", "/x%2Fy ", None),
    ],
)
def test_a_path_is_decoded_once_and_never_resolved(target: bytes, path: str, authority: bytes | None) -> None:
    found = parse_head(head(first=b"GET " + target + b" HTTP/1.1")).head
    assert (found.path, found.fields.get(AUTHORITY)) == (path, authority)


@pytest.mark.parametrize(
    ("lines", "version", "keeps"),
    [
        ([], b"1.1", True),
        ([b"connection: close"], b"1.1", False),
        ([b"connection: x, CLOSE"], b"1.1", False),
        ([b"connection: x", b"connection: close"], b"1.1", False),
        ([], b"1.0", False),
        ([b"connection: Keep-Alive"], b"1.0", True),
        ([b"connection: keep-alive, close"], b"1.0", False),
    ],
)
def test_a_head_says_whether_a_further_request_may_follow(
    lines: list[bytes], version: bytes, keeps: bool
) -> None:
    assert parse_head(head(*lines, first=b"GET / HTTP/" + version)).keeps_alive is keeps


def test_a_body_has_a_length_or_comes_in_chunks() -> None:
    assert parse_head(head(b"content-length: 017")).length == 17
    assert parse_head(head(b"transfer-encoding: Chunked")).is_chunked
    assert parse_head(head(b"expect: 100-Continue")).expects_continue
    assert not parse_head(head(b"expect: 100-continue", first=b"POST / HTTP/1.0")).expects_continue


REFUSED: dict[str, tuple[bytes, int]] = {
    "no version": (head(first=b"GET /"), 400),
    "two spaces": (head(first=b"GET  / HTTP/1.1"), 400),
    "a tab": (head(first=b"GET\t/ HTTP/1.1"), 400),
    "a method that is no token": (head(first=b"G@T / HTTP/1.1"), 400),
    "a long method": (head(first=b"G" * 33 + b" / HTTP/1.1"), 400),
    "a fragment": (head(first=b"GET /x#y HTTP/1.1"), 400),
    "a space in the target": (head(first=b"GET /a b HTTP/1.1"), 400),
    "a target that is not ASCII": (head(first=b"GET /\xc3\xa4 HTTP/1.1"), 400),
    "a target that is no path": (head(first=b"GET x HTTP/1.1"), 400),
    "the target of CONNECT": (head(first=b"CONNECT localhost:80 HTTP/1.1"), 400),
    "another scheme": (head(first=b"GET ftp://h/ HTTP/1.1"), 400),
    "HTTP/2": (head(first=b"PRI * HTTP/2.0"), 505),
    "HTTP/1.2": (head(first=b"GET / HTTP/1.2"), 505),
    "white space before the colon": (head(b"content-length : 5"), 400),
    "no colon": (head(b"content-length"), 400),
    "no name": (head(b": x"), 400),
    "a folded line": (head(b"a: b", b" c"), 400),
    "a line feed": (head(b"a: b\nc: d"), 400),
    "a carriage return": (head(b"a: b\rc: d"), 400),
    "NUL": (head(b"a: b\0"), 400),
    "DEL": (head(b"a: b\x7f"), 400),
    "two lengths": (head(b"content-length: 5", b"content-length: 6"), 400),
    "the same length twice": (head(b"content-length: 5", b"content-length: 5"), 400),
    "a list of lengths": (head(b"content-length: 5, 5"), 400),
    "a length with a sign": (head(b"content-length: +5"), 400),
    "a length below zero": (head(b"content-length: -1"), 400),
    "a length with an underscore": (head(b"content-length: 1_0"), 400),
    "a length in hexadecimal": (head(b"content-length: 0x5"), 400),
    "an empty length": (head(b"content-length:"), 400),
    "a length of other digits": (head("content-length: \u0665".encode()), 400),
    "a huge length": (head(b"content-length: " + b"9" * 19), 400),
    "a length and chunks": (head(b"content-length: 5", b"transfer-encoding: chunked"), 400),
    "chunks in HTTP/1.0": (head(b"transfer-encoding: chunked", first=b"POST / HTTP/1.0"), 400),
    "another coding": (head(b"transfer-encoding: gzip, chunked"), 501),
    "chunked twice": (head(b"transfer-encoding: chunked", b"transfer-encoding: chunked"), 501),
    "chunked and identity": (head(b"transfer-encoding: chunked, identity"), 501),
    "an empty coding": (head(b"transfer-encoding:"), 501),
    "another expectation": (head(b"expect: coffee"), 417),
    "too many headers": (head(*[b"a: b"] * 100), 431),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_two_readers_could_understand_differently_is_refused(case: str) -> None:
    data, status = REFUSED[case]
    with pytest.raises(BadRequest) as caught:
        parse_head(data)
    assert caught.value.status == status


def test_a_hundred_headers_are_not_too_many() -> None:
    assert len(parse_head(head(*[b"a: b"] * 99)).head.headers) == 100


@pytest.mark.parametrize("filler", [b" ", b"\t", b"a", b"\xff", b": "])
def test_no_head_takes_long_to_refuse(filler: bytes) -> None:
    data = head(b"a:" + filler * (MAX_HEAD_BYTES // len(filler)) + b"\0")
    began = time.process_time()
    with pytest.raises(BadRequest):
        parse_head(data)
    # A bound against a quadratic pattern, which takes seconds; it is no measure of speed.
    assert time.process_time() - began < 1


def test_equal_heads_are_one_object_and_long_ones_are_not_kept() -> None:
    assert parse_head(head(b"a: b")) is parse_head(head(b"a: b"))
    long = head(b"a: " + b"b" * 3000)
    assert parse_head(long) is not parse_head(long)
