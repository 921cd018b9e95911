"""One HTTP/1.1 exchange: how bodies end, what is too much, and what makes a connection unfit for another."""

from __future__ import annotations

import asyncio

import pytest

from portbook.net.http_connection import MAX_HEAD_BYTES, Broken, HttpConnection, Response, TooLarge
from support.scripted_api import HANG, Answer, Conversation, Upstream, answer

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
MAX_BODY = 100


async def connect(upstream: Upstream) -> HttpConnection:
    _, connection = await asyncio.get_running_loop().create_connection(
        HttpConnection, "127.0.0.1", upstream.port
    )
    return connection


def exchange(
    said: Answer, *, ends_at_head: bool = False, max_body: int = MAX_BODY
) -> tuple[Response | Exception, bool]:
    """Return the response or what was raised, and whether the connection may be used again."""

    async def main() -> tuple[Response | Exception, bool]:
        async with Upstream(said) as upstream:
            connection = await connect(upstream)
            try:
                found: Response | Exception = await connection.exchange(
                    REQUEST, max_body=max_body, ends_at_head=ends_at_head
                )
            except (Broken, TooLarge) as error:
                found = error
            is_usable = connection.is_usable
            connection.abort()
            return found, is_usable

    return asyncio.run(main())


def in_pieces(data: bytes) -> Answer:
    """The same bytes, one write for each."""

    async def say(conversation: Conversation) -> None:
        for byte in data:
            conversation.writer.write(bytes([byte]))
            await conversation.writer.drain()
            await asyncio.sleep(0)

    return say


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GOOD = [
    # what, the answer, its status, its body, whether the connection can go on
    ("a length", answer(b"abc"), 200, b"abc", True),
    ("an empty body", answer(b""), 200, b"", True),
    ("chunks", CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 200, b"abcde", True),
    ("chunks and trailers", CHUNKED + b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n", 200, b"abc", True),
    ("no content", b"HTTP/1.1 204 No\r\n\r\n", 204, b"", True),
    ("not modified, with a length", b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", 304, b"", True),
    ("told to close", answer(b"abc", Connection="close"), 200, b"abc", False),
    ("HTTP/1.0", b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc", False),
    ("an interim response", b"HTTP/1.1 100 Continue\r\n\r\n" + answer(b"abc"), 200, b"abc", True),
    (
        "early hints",
        b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 103 Early\r\n\r\n" + answer(b"abc", 404),
        404,
        b"abc",
        True,
    ),
    ("exactly as much as may come", answer(b"x" * MAX_BODY), 200, b"x" * MAX_BODY, True),
]


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "byte by byte"])
@pytest.mark.parametrize(("what", "said", "status", "body", "goes_on"), GOOD, ids=[row[0] for row in GOOD])
def test_a_response_is_read_to_its_end(
    what: str, said: bytes, status: int, body: bytes, goes_on: bool, whole: bool
) -> None:
    found, is_usable = exchange(said if whole else in_pieces(said))
    assert isinstance(found, Response), (what, found)
    assert (found.status, found.body, is_usable) == (status, body, goes_on)


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    async def say(conversation: Conversation) -> None:
        conversation.writer.write(b"HTTP/1.1 200 OK\r\n\r\nabc")
        conversation.writer.close()

    found, is_usable = exchange(say)
    assert isinstance(found, Response)
    assert (found.body, is_usable) == (b"abc", False)


def test_a_response_to_head_has_no_body_whatever_it_says() -> None:
    found, is_usable = exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", ends_at_head=True)
    assert isinstance(found, Response)
    assert (found.status, found.body, is_usable) == (200, b"", True)


def test_a_response_to_head_that_has_a_body_all_the_same_ends_the_connection() -> None:
    found, is_usable = exchange(answer(b"abc"), ends_at_head=True)
    assert isinstance(found, Response)
    assert (found.body, is_usable) == (b"", False)


def test_headers_are_found_by_their_names_in_lower_case() -> None:
    said = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: 1\r\nx-a: 2\r\nContent-TYPE:  text/plain \r\n\r\n"
    found, _ = exchange(said)
    assert isinstance(found, Response)
    assert found.headers == {b"content-length": b"0", b"x-a": b"1, 2", b"content-type": b"text/plain"}


BAD = [
    ("two lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
    ("a list of lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc"),
    ("a signed length", b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc"),
    ("an endless length", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc"),
    (
        "length and chunks",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n" + CHUNKED[17:] + b"3\r\nabc\r\n0\r\n\r\n",
    ),
    ("chunks and length", CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    ("another coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    ("no coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nabc"),
    ("a bad chunk", CHUNKED + b"xyz\r\nabc\r\n0\r\n\r\n"),
    ("a bare line feed", b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc"),
    ("a folded header", b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 3\r\n\r\nabc"),
    ("a space before the colon", b"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc"),
    ("another protocol", b"SSH-2.0-OpenSSH_9.6\r\n"),
    ("another version", b"HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc"),
    ("a bad status", b"HTTP/1.1 9999 OK\r\nContent-Length: 3\r\n\r\nabc"),
    ("an upgrade", b"HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x00\x01"),
    ("one large header", b"HTTP/1.1 200 OK\r\nX: " + b"a" * (MAX_HEAD_BYTES + 10) + b"\r\n\r\n"),
    ("many headers", b"HTTP/1.1 200 OK\r\n" + b"X-Header: abcdefghij\r\n" * 4000 + b"\r\n"),
    ("headers without end", b"HTTP/1.1 200 OK\r\nX: " + b"a" * (MAX_HEAD_BYTES * 5)),
    ("interim responses without end", b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000),
    ("trailers without end", CHUNKED + b"1\r\na\r\n0\r\n" + b"X-Header: abcdefghij\r\n" * 20_000),
]


@pytest.mark.parametrize(("what", "said"), BAD, ids=[row[0] for row in BAD])
def test_what_is_not_one_certain_response_breaks_the_connection(what: str, said: bytes) -> None:
    found, is_usable = exchange(said, max_body=10_000_000)
    assert isinstance(found, Broken), (what, found)
    assert not is_usable


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        CHUNKED + b"5\r\nabc",
        CHUNKED + b"3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Len",
        b"",
    ],
)
def test_a_response_that_is_cut_short_is_none(said: bytes) -> None:
    async def say(conversation: Conversation) -> None:
        conversation.writer.write(said)
        conversation.writer.close()

    found, is_usable = exchange(say)
    assert isinstance(found, Broken)
    assert (found.was_heard, is_usable) == (bool(said), False)


@pytest.mark.parametrize(
    "said",
    [
        answer(b"x" * (MAX_BODY + 1)),
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n",
        CHUNKED + b"32\r\n" + b"x" * 50 + b"\r\n" + b"33\r\n" + b"x" * 51 + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MAX_BODY + 1),
    ],
    ids=["length", "announced", "chunks", "until the end"],
)
def test_a_body_that_is_too_large_is_not_read(said: bytes) -> None:
    found, is_usable = exchange(said)
    assert isinstance(found, TooLarge)
    assert not is_usable


@pytest.mark.parametrize(
    "surplus", [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", b"x", b"\x00", b"HT"]
)
def test_bytes_after_a_response_end_the_connection(surplus: bytes) -> None:
    """Else the next request would be given an answer that somebody prepared for it."""
    found, is_usable = exchange(answer(b"abc") + surplus)
    assert isinstance(found, Response)
    assert (found.body, is_usable) == (b"abc", False)


def test_bytes_that_come_while_nobody_asks_end_the_connection() -> None:
    async def main() -> None:
        async with Upstream(answer(b"abc"), greeting=answer(b"forged")) as upstream:
            connection = await connect(upstream)
            while connection.is_usable:  # until the greeting has come
                await asyncio.sleep(0)
            with pytest.raises(Broken):
                await connection.exchange(REQUEST, max_body=MAX_BODY)

    asyncio.run(main())


def test_a_connection_carries_many_exchanges() -> None:
    async def main() -> None:
        async with Upstream(answer(b"1"), CHUNKED + b"1\r\n2\r\n0\r\n\r\n", answer(b"3")) as upstream:
            connection = await connect(upstream)
            found = [(await connection.exchange(REQUEST, max_body=9)).body for _ in range(3)]
            assert found == [b"1", b"2", b"3"]
            assert upstream.connections == 1
            connection.abort()

    asyncio.run(main())


def test_a_cancelled_exchange_closes_its_connection() -> None:
    async def main() -> None:
        async with Upstream(HANG) as upstream:
            connection = await connect(upstream)
            task = asyncio.ensure_future(connection.exchange(REQUEST, max_body=9))
            while not upstream.asked:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not connection.is_usable
            await asyncio.wait_for(upstream.left.wait(), 10)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("announced", "idle_s"),
    [
        (None, 4.0),
        ("timeout=30, max=100", 29.0),
        ("max=5,TIMEOUT=2", 1.0),
        ("timeout=9999", 60.0),
        ("x", 4.0),
    ],
)
def test_an_idle_connection_is_kept_as_long_as_its_server_keeps_it(
    announced: str | None, idle_s: float
) -> None:
    async def main() -> float:
        headers = {} if announced is None else {"Keep_Alive": announced}
        async with Upstream(answer(b"", **headers)) as upstream:
            connection = await connect(upstream)
            await connection.exchange(REQUEST, max_body=9)
            left = connection.idle_until - connection.loop.time()
            connection.abort()
            return left

    assert idle_s - 1 < asyncio.run(main()) <= idle_s
