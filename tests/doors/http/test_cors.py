"""CORS: preflights of browsers, and which pages may read answers; allowed hosts and origins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import handshake
from support.mcp_http_client import run as run_async
from support.mcp_http_client import serving
from support.portbook_process import run

INSPECTOR = "http://localhost:6274"
ALLOWED: dict[str, Any] = {
    "server.allowed_origins": (INSPECTOR,),
    "server.allowed_hosts": ("mcp.example.com",),
}
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("2025-11-25")}
CALL = {"session_id": "s", "tool_id": "echo", "args": {"text": "hi"}}


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
    assert f"server.{setting}[0] {words}" in finished.err
