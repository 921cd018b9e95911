"""The Host and Origin check: no route serves a request of a foreign Host or Origin."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.doors.http.request import Headers, InboundRequest, RequestHead
from portbook.doors.http.response import Reply
from portbook.doors.http.route_table import route_table
from portbook.doors.http.router import Route, Router, refuse_head
from portbook.errors import Reason
from portbook.net.allowed_hosts_and_origins import Hosts
from support.in_process_connection import handshake
from support.mcp_http_client import run as run_async
from support.mcp_http_client import serving
from support.portbook_process import HttpServer, http_server

FOREIGN: list[dict[str, str]] = [{"host": "evil.test"}, {"origin": "https://evil.test"}, {"origin": "null"}]
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("2025-11-25")}
CALL = {"session_id": "s", "tool_id": "echo", "args": {"text": "hi"}}

# The routes that leave a record of a refused request; every other one answers with a sentence alone.
RECORDED = {
    ("GET", "/tools"),
    ("GET", "/tools/{}"),
    ("POST", "/tools/{}"),
    ("POST", "/execute"),
    ("POST", "/rpc"),
    ("POST", "/approvals/{}"),
    ("POST", "/operator/upstreams/{}"),
    ("POST", "/operator/pins/{}"),
    ("POST", "/operator/policy/explain"),
    ("POST", "/operator/policy/replay"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with http_server(cwd=tmp_path_factory.mktemp("front")) as started:
        yield started


def exchange(server: HttpServer, request: bytes) -> bytes:
    """Send a request as it is; return all that comes until the server hangs up."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(request)
        return b"".join(iter(lambda: raw.recv(65536), b""))


async def call(router: Router, *headers: tuple[bytes, bytes]) -> Reply:
    head = RequestHead("GET", "/new", b"", list(headers))
    return await router.handle(head).serve(InboundRequest(head))


def test_every_route_refuses_a_foreign_host_and_a_foreign_origin(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            table = list(route_table(client.served))
            assert set(table) >= RECORDED
            for method, path in table:
                for foreign in FOREIGN:
                    before = len(client.sink.records)
                    body = None if method in ("GET", "HEAD") else CALL
                    refused = await client.send(body, method, path.replace("{}", "x"), **foreign)
                    assert refused.status == 403, (method, path, foreign)
                    reasons = [record["error"]["reason"] for record in client.sink.records[before:]]
                    assert reasons == ["FOREIGN_HOST"] * ((method, path) in RECORDED), (method, path)

    run_async(main())


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([(b"host", b"evil.test")], id="foreign host"),
        pytest.param([(b"host", b"localhost"), (b"origin", b"https://evil.test")], id="foreign origin"),
        pytest.param([(b"host", b"localhost"), (b":authority", b"evil.test")], id="in the request line"),
    ],
)
def test_a_route_that_words_no_refusal_is_not_reached_either(headers: list[tuple[bytes, bytes]]) -> None:
    reached: list[str] = []

    async def serve(request: InboundRequest) -> Reply:
        reached.append(request.head.path)
        return Reply(200, b"")

    router = Router({("GET", "/new"): Route(serve)}, Hosts(is_exposed=False))

    async def main() -> None:
        refused = await call(router, *headers)
        assert (refused.status, b"The operator can allow it" in refused.body) == (403, True)
        assert not reached
        assert (await call(router, (b"host", b"localhost"))).status == 200
        assert reached == ["/new"]

    run_async(main())


@pytest.mark.parametrize("name", [b"origin", b"content-type", b"authorization", b"mcp-session-id"])
def test_a_header_of_which_one_value_counts_is_sent_once(name: bytes) -> None:
    once: Headers = [(b"host", b"localhost"), (b"accept", b"a/b"), (b"accept", b"c/d")]
    head = RequestHead("GET", "/new", b"", [*once, (name, b"a"), (name, b"a")], "1.1")
    refused = refuse_head(head, Hosts(is_exposed=False))
    assert refused is not None
    assert refused.reason is Reason.REPEATED_HEADER
    assert refuse_head(RequestHead("GET", "/new", b"", once, "1.1"), Hosts(is_exposed=False)) is None


@pytest.mark.parametrize(
    ("path", "body"), [("/mcp", HELLO), ("/rpc", HELLO), ("/execute", CALL), ("/livez", None), ("/no", None)]
)
def test_the_same_repeated_header_has_the_same_verdict_on_every_route(
    server: HttpServer, path: str, body: Any
) -> None:
    data = json.dumps(body).encode() if body is not None else b""
    answer = exchange(
        server,
        b"%s %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        b"authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n%s"
        % (b"GET" if body is None else b"POST", path.encode(), len(data), data),
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"The header authorization may be sent once only." in answer


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nhost: evil.test\r\n", id="good, then evil"),
        pytest.param(b"GET /livez HTTP/1.1\r\nhost: evil.test\r\nHOST: localhost\r\n", id="evil, then good"),
        pytest.param(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n", id="twice the same"),
        pytest.param(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nhost: evil.test\r\n", id="a message"),
        pytest.param(b"GET /livez HTTP/1.1\r\n", id="none"),
    ],
)
def test_a_request_has_one_host_or_the_connection_ends(server: HttpServer, head: bytes) -> None:
    answer = exchange(
        server, head + b"content-length: 0\r\n\r\nGET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://localhost/livez", 200),
        (b"http://LOCALHOST:1/livez?x=http://evil.test", 200),
        (b"http://evil.test/livez", 403),
        (b"http://localhost@evil.test/livez", 403),
        (b"http://evil.test:80/livez#http://localhost", 400),
        (b"/livez?u=http://evil.test", 200),
    ],
)
def test_a_host_in_the_request_line_is_compared_too(server: HttpServer, target: bytes, status: int) -> None:
    answer = exchange(server, b"GET " + target + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(
    ("path", "body"), [("/mcp", HELLO), ("/rpc", HELLO), ("/execute", CALL), ("/tools", None), ("/", None)]
)
def test_a_foreign_host_and_a_foreign_origin_are_told_the_setting(
    tmp_path: Path, path: str, body: Any
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            method = "GET" if body is None else "POST"
            for header, setting in (
                ({"host": "mcp.example.com"}, "server.allowed_hosts"),
                ({"origin": "http://localhost:6274"}, "server.allowed_origins"),
            ):
                refused = await client.send(body, method, path, **header)
                assert (refused.status, setting in refused.body.decode()) == (403, True)
                assert "access-control-allow-origin" not in refused.headers

    run_async(main())


def test_the_words_of_a_refusal_stand_where_its_contract_has_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            rest = await client.send(CALL, path="/execute", host="evil.test")
            assert rest.json["error"]["message"].startswith("The Host header does not name this server.")
            assert rest.json["error"]["details"] == {"reason": "FOREIGN_HOST"}
            rpc = await client.send(HELLO, path="/mcp", origin="https://evil.test")
            assert rpc.json["error"]["data"]["hint"].startswith("Pages of this Origin may not call tools")
            assert {record["error"]["reason"] for record in client.sink.records} == {"FOREIGN_HOST"}

    run_async(main())
