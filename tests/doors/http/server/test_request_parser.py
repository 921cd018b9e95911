"""Requests of one connection, read however their bytes come."""

from __future__ import annotations

import tracemalloc

import pytest

from portbook.doors.http.server.request_parser import MAX_HEAD_BYTES, BadRequest, RequestReader
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, OVERSIZE

FIRST = b"POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello"
SECOND = b"POST /b HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx: y\r\n\r\n"
THIRD = b"GET /c HTTP/1.1\r\nhost: h\r\n\r\n"


def requests(*parts: bytes) -> list[tuple[str, object]]:
    """Return the paths and bodies that are read from bytes that come in these parts."""
    reader, found, path = RequestReader(), list[tuple[str, object]](), None
    for part in parts:
        reader.feed(part)
        while True:
            if path is None:
                parsed = reader.read_head()
                if parsed is None:
                    break
                path = parsed.head.path
            body = reader.read_body()
            if body is None:
                break
            found.append((path, body))
            path = None
    return found


def test_requests_are_read_one_after_the_other_however_they_come() -> None:
    whole = FIRST + SECOND + THIRD
    expected = [("/a", b"hello"), ("/b", b"hi"), ("/c", b"")]
    assert requests(whole) == expected
    assert requests(*[whole[at : at + 1] for at in range(len(whole))]) == expected
    for step in (2, 3, 5, 64):
        assert requests(*[whole[at : at + step] for at in range(0, len(whole), step)]) == expected


def test_a_head_that_is_sent_again_is_read_as_before_however_it_comes() -> None:
    longer = FIRST.replace(b"5\r\n\r\nhello", b"6\r\n\r\nhello!")
    # One that begins as the one before it, and one that only a part of it has come of.
    begins_alike = FIRST.replace(b"\r\n\r\nhello", b"\r\nx: y\r\n\r\nhello")
    whole = FIRST + FIRST + longer + FIRST + begins_alike + FIRST + THIRD + THIRD + SECOND + SECOND + FIRST
    expected = requests(FIRST) * 2 + [("/a", b"hello!")] + [("/a", b"hello")] * 3
    expected += [("/c", b"")] * 2 + [("/b", b"hi")] * 2 + [("/a", b"hello")]
    assert requests(whole) == expected
    for step in (1, 2, 3, 7, 40, len(FIRST), len(FIRST) + 1, len(FIRST) - 1):
        assert requests(*[whole[at : at + step] for at in range(0, len(whole), step)]) == expected


@pytest.mark.covers("design.http-server.idle-memory")
@pytest.mark.parametrize("is_chunked", [False, True], ids=["by its length", "in chunks"])
@pytest.mark.parametrize("method", [b"POST", b"GET"])
def test_a_request_that_was_read_leaves_nothing_behind(method: bytes, is_chunked: bool) -> None:
    size = 100_000
    framing = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % size
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"x" * size) if is_chunked else b"x" * size
    whole = b"%b / HTTP/1.1\r\nhost: h\r\n%b\r\n\r\n%b" % (method, framing, body)
    readers = [RequestReader() for _ in range(50)]
    tracemalloc.start()
    try:
        for number, reader in enumerate(readers):
            at = size // 2 if number % 2 else len(whole)  # in two parts, or at once
            parts = [bytes(bytearray(whole[:at])), bytes(bytearray(whole[at:]))]  # none is shared
            while parts:
                reader.feed(parts.pop(0))
                if reader.unread_bytes == at:
                    assert reader.read_head() is not None
                if method == b"POST":
                    reader.read_body()
            if method == b"GET":
                assert reader.skip_body()
        assert tracemalloc.get_traced_memory()[0] < 10 * size
    finally:
        tracemalloc.stop()


def test_a_reader_is_clear_only_when_it_holds_nothing() -> None:
    reader, awaits_body = RequestReader(), False
    for part in (FIRST[:10], FIRST[10:], FIRST + FIRST[:3], FIRST[3:-2], FIRST[-2:], SECOND, FIRST):
        reader.feed(part)
        assert not reader.is_clear
        while awaits_body or reader.read_head() is not None:
            awaits_body = reader.read_body() is None
            if awaits_body:
                break
        holds = reader.held_bytes or reader.unread_bytes or reader.has_begun_body
        assert not (reader.is_clear and holds)
    assert reader.is_clear
    reader.feed(b"GET")
    reader.clear()
    assert (reader.is_clear, reader.held_bytes) == (True, 0)


@pytest.mark.parametrize("step", [1, 1000, MAX_HEAD_BYTES * 2])
def test_a_head_has_one_limit_however_it_comes(step: int) -> None:
    def fed(size: int) -> None:
        start, end = b"GET / HTTP/1.1\r\na: ", b"\r\n\r\n"
        data = start + b"b" * (size - len(start) - len(end)) + end
        reader = RequestReader()
        parsed = None
        for at in range(0, len(data), step):
            reader.feed(data[at : at + step])
            parsed = reader.read_head()
        assert parsed is not None

    fed(MAX_HEAD_BYTES)
    with pytest.raises(BadRequest) as caught:
        fed(MAX_HEAD_BYTES + 1)
    assert caught.value.status == 431


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01", b"{}", b"GET / HTTP/1.1\n", b"GET / HTTP/1.1\r\na: b\n", b"\n", b"\r\n"]
)
def test_what_cannot_become_a_head_is_refused_before_its_end(data: bytes) -> None:
    with pytest.raises(BadRequest) as caught:
        requests(*[data[at : at + 1] for at in range(len(data))])
    assert caught.value.status == 400


def test_a_body_over_the_limit_is_known_by_its_head_or_as_soon_as_it_is_over() -> None:
    head = b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n"
    assert requests(head % MAX_FRAME_BYTES, b"x" * MAX_FRAME_BYTES) == [("/", b"x" * MAX_FRAME_BYTES)]
    reader = RequestReader()
    reader.feed(head % (MAX_FRAME_BYTES + 1))
    assert reader.read_head() is not None
    assert reader.read_body() is OVERSIZE
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n")
    assert reader.read_head() is not None
    reader.feed(b"%x\r\n" % (MAX_FRAME_BYTES + 1))
    assert reader.read_body() is OVERSIZE
    assert reader.held_bytes == 0


def test_what_is_held_is_counted_until_it_is_read() -> None:
    reader = RequestReader()
    reader.feed(FIRST[:30])
    assert (reader.held_bytes, reader.begins_with((b"GET ", b"POST "))) == (30, True)
    for head in (b"content-length: 9\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n9\r\n"):
        reader = RequestReader()
        reader.feed(b"POST / HTTP/1.1\r\nhost: h\r\n" + head + b"1234")
        assert reader.read_head() is not None
        assert reader.read_body() is None
        reader.feed(b"5678")
        assert reader.held_bytes == 8
        assert reader.read_body() is None
        assert reader.held_bytes == 8


@pytest.mark.parametrize("sent", [FIRST, SECOND])
def test_a_body_is_skipped_only_if_all_of_it_has_come(sent: bytes) -> None:
    reader = RequestReader()
    reader.feed(sent + THIRD)
    assert reader.read_head() is not None
    assert reader.skip_body()
    third = reader.read_head()
    assert third is not None
    assert third.head.path == "/c"
    reader = RequestReader()
    reader.feed(sent[:-1])
    assert reader.read_head() is not None
    assert not reader.skip_body()
