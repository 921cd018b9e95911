"""Bodies in chunks: read whole, however they come, and never past their end."""

from __future__ import annotations

import pytest

from portbook.doors.http.server.request_parser import BadRequest, ChunkedBody

WHOLE = b"3\r\nabc\r\nA;name=value\r\n0123456789\r\n000\r\nTrailer: x\r\nauthorization: y\r\n\r\n"


def test_a_body_is_read_up_to_its_end_and_its_trailers_are_dropped() -> None:
    body = ChunkedBody(100)
    assert body.read(WHOLE + b"GET /", 0) == (len(WHOLE), True)
    assert bytes(body.content) == b"abc0123456789"


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_it_does_not_matter_how_a_body_comes(step: int) -> None:
    body, at, has_ended = ChunkedBody(100), 0, False
    for end in range(step, len(WHOLE) + step, step):
        assert not has_ended
        at, has_ended = body.read(WHOLE[:end], at)
    assert (at, has_ended, bytes(body.content)) == (len(WHOLE), True, b"abc0123456789")


def test_a_body_over_the_limit_is_read_no_further_than_the_size_that_says_so() -> None:
    body = ChunkedBody(4)
    assert body.read(b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", 0) == (len(b"3\r\nabc\r\n3\r\n"), False)
    assert (body.size, bytes(body.content)) == (6, b"")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\r\n", 400),
        (b"g\r\n", 400),
        (b"-1\r\n", 400),
        (b"0x5\r\n", 400),
        (b" 5\r\n", 400),
        (b"5 \r\n", 400),
        (b"5\n", 400),
        (b"5;a\nb\r\n", 400),
        (b"5;\x00\r\n", 400),
        (b"123456789\r\n", 400),
        (b"5;" + b"a" * 300, 400),
        (b"3\r\nabcd\r\n", 400),
        (b"3\r\nabc\nx", 400),
        (b"0\r\nno trailer\r\n\r\n", 400),
        (b"0\r\n folded\r\n\r\n", 400),
        (b"0\r\na: b\n\n", 400),
        (b"0\r\na: " + b"b" * 9000, 431),
    ],
)
def test_what_is_no_chunk_is_refused(data: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as caught:
        ChunkedBody(100).read(data, 0)
    assert caught.value.status == status
