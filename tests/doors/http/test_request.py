"""A message as HTTP brings it: its body within limits, its headers as they were sent."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

from portbook.app.assemble import assemble
from portbook.audit.memory_sink import MemorySink
from portbook.doors.http.mounted_asgi_app import asgi_application
from portbook.doors.http.request import EVERYTHING as EVERYTHING_ACCEPTED
from portbook.doors.http.request import RequestHead, accepted, arrival_of
from portbook.doors.http.route_table import routes_of
from portbook.model import Arrival
from portbook.settings import load_settings
from support.portbook_process import HttpServer, invoke


def test_a_header_sent_twice_counts_twice() -> None:
    sent = [(b"accept", b"text/event-stream"), (b"host", b"a"), (b"accept", b"application/json")]
    fields = RequestHead("GET", "/", b"", sent).fields
    assert fields == {b"accept": b"text/event-stream, application/json", b"host": b"a"}
    assert accepted(fields[b"accept"]) == EVERYTHING_ACCEPTED


def test_equal_arrivals_are_one_object_and_others_are_not() -> None:
    def arrived(route: str = "/mcp", **given: bytes) -> Arrival:
        sent = [(name.replace("_", "-").encode(), value) for name, value in given.items()]
        return arrival_of(RequestHead("POST", route, b"", sent), route, {"mcp-name": "a"})

    alike = [arrived(authorization=b"Bearer one", content_length=length) for length in (b"1", b"2")]
    assert alike[0] is alike[1]
    others = [
        arrived(),
        arrived(authorization=b"Bearer two"),
        arrived(authorization=b"Bearer one", x_session_id=b"mine"),
        arrived(authorization=b"Bearer one", traceparent=b"00-1-2-3"),
        arrived("/rpc", authorization=b"Bearer one"),
    ]
    for other in others:
        assert other is not alike[0]
        assert other != alike[0]
    assert [other.key for other in others] == [None, "two", "one", "one", "one"]
    long = [arrived(authorization=b"Bearer " + b"x" * 2000) for _ in range(2)]
    assert long[0] == long[1]
    assert long[0] is not long[1]  # else a few hundred clients could fill memory


def test_what_is_derived_from_a_head_is_made_once() -> None:
    made: list[RequestHead] = []

    def make(head: RequestHead) -> int:
        made.append(head)
        return len(made)

    head = RequestHead("GET", "/", b"", [])
    assert [head.derive(make), head.derive(make)] == [1, 1]


def test_an_oversize_body_is_answered_and_the_next_request_is_served(server: HttpServer) -> None:
    room = 1_048_576 - len(invoke("echo", {"text": ""}))
    assert server.rpc(invoke("echo", {"text": "x" * room})).status == 200
    for extra in (1, 16_000_000):
        response = server.rpc(invoke("echo", {"text": "x" * (room + extra)}))
        assert response.status == 413
        assert response.json["result"]["errors"] == [{"path": "", "msg": "payload_too_large"}]
    assert server.rpc(invoke("echo", {"text": "x"})).status == 200


def test_a_chunked_body_is_read_whole(server: HttpServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    frame = invoke("echo", {"text": "x"})
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(
            b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        for piece in (frame[:10], frame[10:]):
            raw.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        raw.sendall(b"0\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'"result":"x"}')


def test_a_sender_that_leaves_midway_disturbs_nobody(server: HttpServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(
            b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 900\r\n\r\n{"
        )
    assert server.rpc(invoke("echo", {"text": "x"})).status == 200


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(event: Any) -> None:
        sent.append(event)

    settings = load_settings(None, {}, {"docs.enabled": False}, tmp_path)
    assembled = assemble(settings, is_exposed=False, sink=MemorySink())
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/rpc", "headers": headers}

    async def give_up() -> None:
        await asgi_application(routes_of(assembled), body_seconds=0.01)(scope, receive, send)
        await assembled.close()

    asyncio.run(give_up())
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
