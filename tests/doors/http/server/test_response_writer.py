"""The bytes of responses, read by an independent parser."""

from __future__ import annotations

import json

import h11
import pytest

from portbook.doors.http.response import Reply
from portbook.doors.http.server.connection_limits_deadlines_and_overload import busy
from portbook.doors.http.server.request_parser import BadRequest
from portbook.doors.http.server.response_writer import (
    LAST_CHUNK,
    bad_request,
    chunk,
    date_line,
    document,
    stream_head,
)

DATE = date_line(0)


def read(data: bytes, method: str = "GET") -> tuple[h11.Response, bytes]:
    """Return a response and its body; fails where anything is left over."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("host", "h")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    response, body = client.next_event(), b""
    assert isinstance(response, h11.Response)
    while isinstance(event := client.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    assert client.trailing_data[0] == b""
    return response, body


def test_a_document_has_its_length_and_a_date() -> None:
    response, body = read(document(Reply(200, b"a: b\r\n", b"hello"), b"c: d\r\n", DATE))
    assert (response.status_code, body) == (200, b"hello")
    assert dict(response.headers) == {
        b"date": b"Thu, 01 Jan 1970 00:00:00 GMT",
        b"a": b"b",
        b"c": b"d",
        b"content-length": b"5",
    }


def test_a_response_to_head_has_the_length_and_no_body() -> None:
    response, body = read(document(Reply(200, b"", b"hello"), b"", DATE, is_head=True), "HEAD")
    assert (dict(response.headers)[b"content-length"], body) == (b"5", b"")


def test_a_204_has_no_length() -> None:
    response, body = read(document(Reply(204, b""), b"", DATE))
    assert b"content-length" not in dict(response.headers)
    assert body == b""


def test_a_stream_comes_in_chunks() -> None:
    head = stream_head(Reply(200, b""), b"", DATE, in_chunks=True)
    assert read(head + chunk(b"one") + chunk(b"x" * 20) + LAST_CHUNK)[1] == b"one" + b"x" * 20


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (bad_request(BadRequest(400, "Wrong."), DATE), 400, "INVALID_INPUT"),
        (bad_request(BadRequest(431, "Large."), DATE), 431, "PAYLOAD_TOO_LARGE"),
        (bad_request(BadRequest(505, "Old."), DATE), 505, "NOT_SUPPORTED"),
        (busy(DATE), 503, "BUSY"),
    ],
)
def test_a_problem_is_json_and_the_last_response(data: bytes, status: int, code: str) -> None:
    response, body = read(data)
    headers = dict(response.headers)
    assert (response.status_code, json.loads(body)["error"]["code"]) == (status, code)
    assert headers[b"connection"] == b"close"
    assert (b"retry-after" in headers) == (status == 503)
