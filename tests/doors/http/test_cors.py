"""What every HTTP request meets first: one Host, allowed names and origins, and the questions of browsers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import handshake
from support.mcp_http_client import run as run_async
from support.mcp_http_client import serving
from support.portbook_process import HttpServer, http_server, run

INSPECTOR = "http://localhost:6274"
ALLOWED: dict[str, Any] = {
    "server.allowed_origins": (INSPECTOR,),
    "server.allowed_hosts": ("mcp.example.com",),
}
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("2025-11-25")}
CALL = {"session_id": "s", "tool_id": "echo", "args": {"text": "hi"}}


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
        (b"http://evil.test:80/livez#http://localhost", 403),
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
                ({"origin": INSPECTOR}, "server.allowed_origins"),
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


def test_a_proxy_may_keep_its_own_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, **ALLOWED) as client:
            answered = await client.send(HELLO, host="MCP.example.com")
            assert answered.json["result"]["protocolVersion"] == "2025-11-25"
            own = await client.send(HELLO, host="mcp.example.com", origin="https://mcp.example.com")
            assert own.status == 200
            assert (await client.send(HELLO, host="evil.example.com")).status == 403

    run_async(main())


@pytest.mark.parametrize("path", ["/mcp", "/rpc", "/execute", "/tools", "/tools/echo", "/openapi.json"])
def test_a_browser_is_told_that_a_page_of_an_allowed_origin_may_call(tmp_path: Path, path: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, **ALLOWED) as client:
            answer = await client.send(
                None,
                "OPTIONS",
                path,
                origin=INSPECTOR,
                access_control_request_method="POST",
                access_control_request_headers="Authorization, content-type,mcp-param-x, x-evil",
            )
            assert (answer.status, answer.body) == (204, b"")
            headers = answer.headers
            assert headers["access-control-allow-origin"] == INSPECTOR
            assert headers["access-control-allow-methods"] == "GET, POST, DELETE"
            assert headers["access-control-allow-headers"] == "authorization, content-type, mcp-param-x"
            assert headers["vary"] == "Origin"
            assert "access-control-allow-credentials" not in headers
            assert "content-length" not in headers

    run_async(main())


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param("/mcp", {"origin": "http://localhost:6275"}, 403, id="another origin"),
        pytest.param("/mcp", {"origin": "null"}, 403, id="no origin's name"),
        pytest.param("/mcp", {"origin": INSPECTOR, "host": "evil.test"}, 403, id="another host"),
        pytest.param("/approvals", {"origin": INSPECTOR}, 405, id="what operators do"),
        pytest.param("/approvals/x", {"origin": INSPECTOR}, 405, id="a decision"),
        pytest.param("/", {"origin": INSPECTOR}, 405, id="a page"),
        pytest.param("/mcp", {}, 405, id="no origin"),
    ],
)
def test_no_other_page_and_no_other_route_is_shared(
    tmp_path: Path, path: str, headers: dict[str, str], status: int
) -> None:
    async def main() -> None:
        async with serving(tmp_path, **ALLOWED) as client:
            asked = {"access_control_request_method": "POST", **headers}
            answer = await client.send(None, "OPTIONS", path, **asked)
            assert answer.status == status
            assert not any(name.startswith("access-control") for name in answer.headers)

    run_async(main())


def test_a_page_of_an_allowed_origin_reads_answers_refusals_and_streams(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, **ALLOWED) as client:
            greeted = await client.send(HELLO, origin=INSPECTOR)
            session = greeted.headers["mcp-session-id"]
            stream = client.start(
                None, "GET", mcp_session_id=session, origin=INSPECTOR, accept="text/event-stream"
            )
            await stream.until(lambda: stream.status == 200)
            wrong = await client.send(b"nonsense", path="/execute", origin=INSPECTOR)
            missing = await client.send(None, "PUT", origin=INSPECTOR)
            ended = await client.send(None, "DELETE", mcp_session_id=session, origin=INSPECTOR)
            answers = (greeted, stream, wrong, missing, ended)
            assert [each.status for each in answers] == [200, 200, 400, 405, 204]
            for each in answers:
                assert each.headers["access-control-allow-origin"] == INSPECTOR
                assert "Mcp-Session-Id" in each.headers["access-control-expose-headers"]
            own = await client.send(HELLO, origin="http://localhost")
            assert own.status == 200
            assert not any(name.startswith("access-control") for name in own.headers)
            await stream.leave()

    run_async(main())


@pytest.mark.parametrize(
    ("setting", "entry", "words"),
    [
        ("allowed_hosts", "*.example.com", "can be no Host"),
        ("allowed_origins", "*", "can be no Origin"),
        ("allowed_origins", "http://localhost:6274/", "can be no Origin"),
    ],
)
def test_an_entry_that_cannot_be_meant_stops_the_start_with_its_line(
    tmp_path: Path, setting: str, entry: str, words: str
) -> None:
    (tmp_path / "portbook.toml").write_text(f'[server]\n{setting} = ["{entry}"]\n')
    finished = run("serve", "--stdio", cwd=tmp_path)
    assert finished.code == 2
    assert f"portbook.toml:2: server.{setting} lists what {words}" in finished.err
