"""No proxy and this server disagree about where a request ends: what we accept, h11 frames as we do."""

from __future__ import annotations

from typing import NamedTuple

import h11
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from portbook.doors.http.request import AUTHORITY, InboundRequest
from portbook.doors.http.response import Reply
from portbook.doors.http.router import Route, refuse_head
from portbook.doors.http.server.request_parser import BadRequest, RequestReader
from portbook.net.allowed_hosts_and_origins import Hosts
from support.counts import count
from support.under_uvicorn import PARSERS, under_uvicorn

ANY_HOST = Hosts(is_exposed=True)


class Message(NamedTuple):
    method: bytes
    names: list[bytes]
    body: bytes


def ours(data: bytes) -> list[Message]:
    """Return the messages that we accept, up to the first that we do not."""
    reader, found = RequestReader(), list[Message]()
    reader.feed(data)
    try:
        while (parsed := reader.read_head()) is not None:
            if refuse_head(parsed.head, ANY_HOST) is not None:
                break
            body = reader.read_body()
            if not isinstance(body, bytes):
                break
            names = sorted(name for name, _ in parsed.head.headers if name != AUTHORITY)
            found.append(Message(parsed.head.method.encode(), names, body))
            if not parsed.keeps_alive or parsed.head.version == "1.0":  # h11 closes after HTTP/1.0 always
                break
    except BadRequest:
        pass
    return found


def theirs(data: bytes) -> list[Message]:
    """Return the messages that h11 accepts, up to the first that it does not."""
    server, found = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 24), list[Message]()
    server.receive_data(data)
    try:
        while isinstance(request := server.next_event(), h11.Request):
            body = b""
            while isinstance(event := server.next_event(), h11.Data):
                body += bytes(event.data)
            if not isinstance(event, h11.EndOfMessage):
                break
            found.append(Message(request.method, sorted(name for name, _ in request.headers), body))
            server.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            server.send(h11.EndOfMessage())
            if server.our_state is not h11.DONE:
                break
            server.start_next_cycle()
    except h11.ProtocolError:
        pass
    return found


def head(*lines: bytes, first: bytes = b"POST /a HTTP/1.1") -> bytes:
    return b"".join(
        line + b"\r\n" for line in (first, b"host: h", b"content-type: application/json", *lines, b"")
    )


NEXT = head(first=b"GET /hidden HTTP/1.1")

# Odd requests, and whether we accept the first message of each.
CORPUS: dict[str, tuple[bytes, bool]] = {
    "plain": (head(b"content-length: 5") + b"hello" + NEXT, True),
    "chunks": (head(b"transfer-encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n" + NEXT, True),
    "an extension": (head(b"transfer-encoding: chunked") + b"5;a=b\r\nhello\r\n0;c\r\n\r\n" + NEXT, True),
    "trailers": (head(b"transfer-encoding: chunked") + b"0\r\nhost: x\r\na: b\r\n\r\n" + NEXT, True),
    "zeros": (head(b"transfer-encoding: chunked") + b"0005\r\nhello\r\n000\r\n\r\n" + NEXT, True),
    "capitals": (head(b"TRANSFER-ENCODING: CHUNKED") + b"A\r\n0123456789\r\n0\r\n\r\n" + NEXT, True),
    "a GET with a body": (head(b"content-length: 3", first=b"GET / HTTP/1.1") + b"abc" + NEXT, True),
    "HTTP/1.0": (head(b"content-length: 3", first=b"POST / HTTP/1.0") + b"abc" + NEXT, True),
    "HTTP/1.0 that stays": (head(b"connection: keep-alive", first=b"GET / HTTP/1.0") + NEXT, True),
    "a length and chunks": (
        head(b"content-length: 5", b"transfer-encoding: chunked") + b"0\r\n\r\n" + NEXT,
        False,
    ),
    "chunks and a length": (
        head(b"transfer-encoding: chunked", b"content-length: 5") + b"0\r\n\r\n" + NEXT,
        False,
    ),
    "two lengths": (head(b"content-length: 5", b"content-length: 0") + b"hello" + NEXT, False),
    "a list of lengths": (head(b"content-length: 5, 5") + b"hello" + NEXT, False),
    "a folded length": (head(b"content-length:", b" 5") + b"hello" + NEXT, False),
    "a folded coding": (head(b"transfer-encoding:", b"\tchunked") + b"0\r\n\r\n" + NEXT, False),
    "bare line feeds": (b"POST /a HTTP/1.1\nhost: h\ncontent-length: 5\n\nhello" + NEXT, False),
    "one bare line feed": (head(b"a: b\ncontent-length: 5") + b"hello" + NEXT, False),
    "a bare carriage return": (head(b"a: b\rcontent-length: 5") + b"hello" + NEXT, False),
    "a space before the colon": (head(b"content-length : 5") + b"hello" + NEXT, False),
    "a signed length": (head(b"content-length: +5") + b"hello" + NEXT, False),
    "a huge length": (head(b"content-length: " + b"9" * 30) + b"hello" + NEXT, False),
    "a hexadecimal length": (head(b"content-length: 0x5") + b"hello" + NEXT, False),
    "a huge chunk": (head(b"transfer-encoding: chunked") + b"FFFFFFFFFFFFFFFF5\r\nhello" + NEXT, False),
    "a chunk of minus one": (head(b"transfer-encoding: chunked") + b"-1\r\nhello" + NEXT, False),
    "a chunk with 0x": (head(b"transfer-encoding: chunked") + b"0x5\r\nhello\r\n0\r\n\r\n" + NEXT, False),
    "a chunk that is too long": (head(b"transfer-encoding: chunked") + b"4\r\nhello\r\n0\r\n\r\n", False),
    "a line feed after a size": (
        head(b"transfer-encoding: chunked") + b"5\nhello\r\n0\r\n\r\n" + NEXT,
        False,
    ),
    "a line feed in an extension": (
        head(b"transfer-encoding: chunked") + b"5;a\nb\r\nhello\r\n0\r\n\r\n" + NEXT,
        False,
    ),
    "another coding": (head(b"transfer-encoding: gzip") + NEXT, False),
    "xchunked": (head(b"transfer-encoding: xchunked") + b"0\r\n\r\n" + NEXT, False),
    "chunked, twice": (head(b"transfer-encoding: chunked, chunked") + b"0\r\n\r\n" + NEXT, False),
    "vertical tab before chunked": (head(b"transfer-encoding: \x0bchunked") + b"0\r\n\r\n" + NEXT, False),
    "NUL in a header": (head(b"a: \0", b"content-length: 5") + b"hello" + NEXT, False),
    "an empty line first": (b"\r\n" + NEXT, False),
    "no host": (b"GET / HTTP/1.1\r\n\r\n" + NEXT, False),
    "two hosts": (head(b"host: x") + NEXT, False),
    "HTTP/0.9": (b"GET /\r\n\r\n", False),
}


@pytest.mark.covers("design.http-server.framing")
@pytest.mark.parametrize("case", CORPUS)
def test_an_odd_request_is_framed_as_h11_does_or_refused(case: str) -> None:
    data, is_accepted = CORPUS[case]
    found = ours(data)
    assert bool(found) is is_accepted
    assert found == theirs(data)[: len(found)]


pieces = st.sampled_from(
    [
        *(b"content-length: 5\r\n", b"content-length: 0\r\n", b"transfer-encoding: chunked\r\n", b"a: b\r\n"),
        *(
            b"POST / HTTP/1.1\r\n",
            b"GET / HTTP/1.0\r\n",
            b"host: h\r\n",
            b"\r\n",
            b"hello",
            b"5\r\nhello\r\n",
        ),
        *(b"0\r\n", b"0\r\n\r\n", b"connection: close\r\n", b"connection: keep-alive\r\n", b";ext", b"A\r\n"),
        *(
            b" ",
            b"\t",
            b"\n",
            b"\r",
            b":",
            b",",
            b"\0",
            b"\x80",
            b"x",
            b"1",
            b"POST /a HTTP/1.1\r\nhost: h\r\n",
        ),
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Bytes that are almost requests: odd ones of the corpus, joined, and changed in a few places."""
    data = b"".join(draw(st.lists(st.sampled_from([raw for raw, _ in CORPUS.values()]) | pieces, max_size=6)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(pieces) + data[at + draw(st.integers(0, 3)) :]
    return data


@pytest.mark.soak("http framings")
@given(streams())
@settings(max_examples=count("http framings"), deadline=None)
def test_whatever_is_sent_is_framed_as_h11_does_or_refused(data: bytes) -> None:
    found = ours(data)
    assert found == theirs(data)[: len(found)]


async def served_under_uvicorn(data: bytes, parser: str) -> list[tuple[bytes, bytes]]:
    """Return the messages that our routes get if a different server frames them."""
    got: list[tuple[bytes, bytes]] = []

    async def note(request: InboundRequest) -> Reply:
        assert isinstance(request.body, bytes)
        got.append((request.head.method.encode(), request.body))
        return Reply(200, b"", b"")

    methods, paths = ("GET", "POST"), ("/", "/a", "/hidden")
    routes = {(method, path): Route(note, takes_message=True) for method in methods for path in paths}
    async with under_uvicorn(routes, parser) as mounted:
        peer = await mounted.connect()
        await peer.send(data)
        peer.half_close()
        await peer.rest()
    return got


@pytest.mark.covers("design.http-server.asgi-framing")
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("case", CORPUS)
def test_under_a_different_server_too_an_odd_request_is_framed_as_h11_does_or_refused(
    case: str, parser: str
) -> None:
    data, _ = CORPUS[case]
    found = uvloop.run(served_under_uvicorn(data, parser))
    framed = theirs(data.lstrip(b"\r\n"))  # RFC 9112, 2.2: a server may skip empty lines before a request
    assert found == [(message.method, message.body) for message in framed][: len(found)]
