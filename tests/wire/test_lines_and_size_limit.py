"""Bytes to lines: what splits, what is ignored, what is too long, and how much is ever held."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, OVERSIZE, Frame, LineSplitter

# Small enough for hypothesis to cross it often; the real limit has tests of its own.
LIMIT = 8


def case(name: str, stream: bytes, *frames: Frame) -> object:
    return pytest.param(stream, list(frames), id=name)


def split(*chunks: bytes, limit: int = LIMIT) -> list[Frame]:
    splitter = LineSplitter(limit)
    frames = list(itertools.chain.from_iterable(splitter.feed(chunk) for chunk in chunks))
    return frames + splitter.close()


def byte_by_byte(stream: bytes) -> list[bytes]:
    return [stream[at : at + 1] for at in range(len(stream))]


def expected(stream: bytes, limit: int = LIMIT) -> list[Frame]:
    """What the rules say of a whole stream, in the plainest words there are."""
    return [
        OVERSIZE if len(line) > limit else line
        for line in stream.split(b"\n")
        if len(line) > limit or line.strip(b" \t\r")
    ]


STREAMS = [
    case("nothing", b""),
    case("one line", b"{}\n", b"{}"),
    case("two lines", b"{}\n[]\n", b"{}", b"[]"),
    case("an unterminated last line is a frame", b"{}\n[]", b"{}", b"[]"),
    case("an unterminated only line is a frame", b"[]", b"[]"),
    case("a trailing CR is kept as white space", b"{}\r\n[]\r\n", b"{}\r", b"[]\r"),
    case("CR does not split", b"1\r2\n3", b"1\r2", b"3"),
    case("VT does not split", b"1\x0b2\n3", b"1\x0b2", b"3"),
    case("FF does not split", b"1\x0c2\n3", b"1\x0c2", b"3"),
    case("FS does not split", b"1\x1c2\n3", b"1\x1c2", b"3"),
    case("NEL does not split", "1\x852\n3".encode(), "1\x852".encode(), b"3"),
    case("LS does not split", "1\u20282\n3".encode(), "1\u20282".encode(), b"3"),
    case("PS does not split", "1\u20292\n3".encode(), "1\u20292".encode(), b"3"),
    case("NUL does not split", b"1\x002\n3", b"1\x002", b"3"),
    case("empty lines are no frames", b"\n\n{}\n\n", b"{}"),
    case("lines of spaces, tabs and CRs are no frames", b"  \n\t\n\r\n \t\r\n{}\n", b"{}"),
    case("an unterminated blank line is no frame", b"{}\n \t\r", b"{}"),
    case("VT alone is not blank", b"\x0b\n", b"\x0b"),
    case("NBSP alone is not blank", b"\xc2\xa0\n", b"\xc2\xa0"),
    case("white space around a value is kept", b" 1 \n", b" 1 "),
    case("bytes that are not UTF-8 are framed like any other", b"\xff\xfe\n\x80\n", b"\xff\xfe", b"\x80"),
    case("exactly the limit passes", b"12345678\n", b"12345678"),
    case("exactly the limit passes, unterminated", b"12345678", b"12345678"),
    case("one more is too long", b"123456789\n", OVERSIZE),
    case("one more is too long, unterminated", b"123456789", OVERSIZE),
    case("a CR counts", b"12345678\r\n", OVERSIZE),
    case("far too long is reported once", b"1" * 100 + b"\n", OVERSIZE),
    case("two lines too long are reported twice", b"1" * 10 + b"\n" + b"2" * 20 + b"\n", OVERSIZE, OVERSIZE),
    case("too long and blank is still too long", b" " * 9 + b"\n", OVERSIZE),
    case("the line after one too long is served", b"1" * 50 + b"\n{}\n", OVERSIZE, b"{}"),
    case("the line before one too long is served", b"{}\n" + b"1" * 50, b"{}", OVERSIZE),
    case("the unterminated line after one too long is served", b"1" * 50 + b"\n{}", OVERSIZE, b"{}"),
]


@pytest.mark.parametrize(("stream", "frames"), STREAMS)
def test_a_stream_gives_its_frames_whether_fed_whole_or_byte_by_byte_or_cut_in_two(
    stream: bytes, frames: list[Frame]
) -> None:
    assert split(stream) == frames
    assert split(*byte_by_byte(stream)) == frames
    for cut in range(len(stream)):
        assert split(stream[:cut], stream[cut:]) == frames


pieces = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\n\n", b"\r", b"\r\n", b" ", b"\t", b"{", b"{}", b"\x0b", b"\xc2\x85"]),
        st.binary(max_size=LIMIT + 3),
    ),
    max_size=30,
)


@given(pieces)
@example([b"12345678", b"9", b"\n", b"{"])
@example([b" " * 9, b"\n"])
def test_where_chunks_are_cut_makes_no_difference(chunks: list[bytes]) -> None:
    stream = b"".join(chunks)
    assert split(*chunks) == split(stream) == split(*byte_by_byte(stream)) == expected(stream)


@given(
    st.lists(
        st.binary(min_size=1, max_size=LIMIT).filter(lambda line: b"\n" not in line and line.strip(b" \t\r"))
    )
)
def test_lines_that_are_written_are_read_again(lines: list[bytes]) -> None:
    assert split(b"".join(line + b"\n" for line in lines)) == lines
    assert split(b"\n".join(lines)) == lines


def test_a_frame_comes_out_with_the_newline_and_not_later() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":') == []
    assert splitter.feed(b"1}\n[") == [b'{"a":1}']
    assert splitter.feed(b"]\n") == [b"[]"]
    assert splitter.close() == []


def test_a_line_too_long_is_reported_before_it_ends_and_not_again() -> None:
    splitter = LineSplitter(LIMIT)
    assert splitter.feed(b"12345678") == []
    assert splitter.feed(b"9") == [OVERSIZE]
    assert splitter.feed(b"more") == []
    assert splitter.feed(b"\n") == []
    assert splitter.close() == []


def test_the_limit_is_one_mebibyte_to_the_byte() -> None:
    assert MAX_FRAME_BYTES == 1_048_576
    full = b"x" * 1_048_576
    halves = (full[:600_000], full[600_000:])
    assert split(full + b"\n", b"{}\n", limit=MAX_FRAME_BYTES) == [full, b"{}"]
    assert split(*halves, b"\n{}\n", limit=MAX_FRAME_BYTES) == [full, b"{}"]
    assert split(full + b"x\n", b"{}\n", limit=MAX_FRAME_BYTES) == [OVERSIZE, b"{}"]
    assert split(*halves, b"x\n{}\n", limit=MAX_FRAME_BYTES) == [OVERSIZE, b"{}"]
    assert LineSplitter().feed(full + b"\n" + full + b"x\n") == [full, OVERSIZE]


def test_three_hundred_megabytes_without_a_newline_are_not_held() -> None:
    splitter = LineSplitter()
    frames: list[Frame] = []
    most_held = 0
    tracemalloc.start()
    try:
        for _ in range(300_000_000 // 65_536 + 1):
            frames += splitter.feed(bytes(65_536))  # a new object each time: whoever keeps it pays for it
            most_held = max(most_held, sum(map(len, splitter._held)) + len(splitter._small))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert frames == [OVERSIZE]
    assert most_held <= MAX_FRAME_BYTES
    assert peak < 2 * MAX_FRAME_BYTES
    assert splitter.feed(b"\n{}\n") == [b"{}"]


def test_nothing_is_held_between_lines() -> None:
    splitter = LineSplitter()
    splitter.feed(b"x" * 1000)
    splitter.feed(b"\n")
    assert (splitter._held, splitter._small, splitter._skipping) == ([], b"", False)


@pytest.mark.parametrize("size", [1, 3, 4095, 4096, 65_536])
def test_a_line_in_pieces_of_any_size_takes_little_more_memory_than_its_bytes(size: int) -> None:
    splitter = LineSplitter()
    tracemalloc.start()
    try:
        for _ in range(200_000 // size + 1):
            splitter.feed(bytes(size))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * (200_000 + size)
