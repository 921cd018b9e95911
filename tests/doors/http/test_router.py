"""Which route a request is for, by its head alone."""

from __future__ import annotations

import asyncio
import json

import pytest

from portbook.doors.http.request import Headers, InboundRequest, RequestHead
from portbook.doors.http.response import Reply
from portbook.doors.http.router import Route, Router, begin_reply, finish_reply
from portbook.errors import Refused
from portbook.net.allowed_hosts_and_origins import Hosts

JSON = (b"content-type", b"application/json")


async def serve(request: InboundRequest) -> Reply:
    return Reply(200, b"", request.segment.encode())


async def refuse(_head: RequestHead, refused: Refused) -> Reply:
    return Reply(refused.row.http, b"", refused.reason.value.encode())


ROUTES = {
    ("GET", "/page"): Route(serve),
    ("POST", "/message"): Route(serve, refuse, takes_message=True),
    ("GET", "/things/{}"): Route(serve),
}
ROUTER = Router(ROUTES, Hosts(is_exposed=False))


def ask(method: str, path: str, *headers: tuple[bytes, bytes]) -> tuple[bool, Reply]:
    """Return whether a request's body is read first, and the reply to it."""
    given: Headers = [(b"host", b"localhost"), *headers]
    head = RequestHead(method, path, b"", given, "1.1")
    handling = ROUTER.handle(head)
    reply = asyncio.run(finish_reply(begin_reply(handling, head, b"")))
    closes = reply.closes or handling.closes
    return handling.takes_message, reply._replace(lines=reply.lines + handling.more, closes=closes)


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/page", 200, b""),
        ("GET", "/things/a", 200, b"a"),
        ("GET", "/things/", 404, None),
        ("GET", "/things/a/b", 404, None),
        ("GET", "/page/", 404, None),
        ("GET", "//page", 404, None),
        ("PUT", "/page", 405, None),
        ("HEAD", "/nothing", 404, None),
    ],
)
def test_a_route_is_found_by_its_method_and_path(
    method: str, path: str, status: int, body: bytes | None
) -> None:
    is_read, reply = ask(method, path)
    assert (is_read, reply.status) == (False, status)
    if body is not None:
        assert reply.body == body
    else:
        error = json.loads(reply.body)["error"]
        assert set(error) == {"code", "message", "details", "retryable", "policy_violation"}


def test_a_wrong_method_is_told_the_right_ones_and_recorded_where_it_carries_a_message() -> None:
    _, bare = ask("GET", "/message")
    assert (bare.status, b"allow: POST\r\n" in bare.lines) == (405, True)
    _, carrying = ask("PUT", "/message", (b"content-length", b"5"))
    assert (carrying.body, b"allow: POST\r\n" in carrying.lines) == (b"WRONG_HTTP_METHOD", True)


def test_a_body_is_read_only_for_a_route_that_takes_a_message_in_json() -> None:
    assert ask("POST", "/message", JSON)[0]
    for content in (b"text/plain", b"application/json; charset=latin-1", b""):
        is_read, reply = ask("POST", "/message", (b"content-type", content))
        assert (is_read, reply.body) == (False, b"NOT_JSON_CONTENT")
    is_read, reply = ask("POST", "/message", JSON, (b"content-encoding", b"gzip"))
    assert (is_read, reply.status) == (False, 415)
    assert ask("POST", "/message", (b"content-type", b'Application/JSON;charset="UTF-8"'))[0]
    assert ask("POST", "/message", JSON, (b"content-encoding", b"identity"))[0]


def test_after_a_head_that_could_be_read_in_two_ways_the_connection_closes() -> None:
    _, reply = ask("POST", "/message", JSON, JSON)
    assert (reply.body, reply.closes) == (b"REPEATED_HEADER", True)
    _, foreign = ask("POST", "/message", JSON, (b"origin", b"http://evil.test"))
    assert (foreign.body, foreign.closes) == (b"FOREIGN_HOST", False)
