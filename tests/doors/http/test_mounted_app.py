"""Inside an ASGI server of someone else, the routes answer as they do in our own."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook import MountedApp
from support.in_process_connection import STATELESS_META, handshake
from support.portbook_process import SAMPLE_TOOLS, HttpServer, child, http_server, invoke

UVICORN = """
import socket, sys, uvicorn
from portbook import MountedApp
from portbook.tools.toolset_loader import load_toolsets

listener = socket.create_server(("127.0.0.1", 0))
app = MountedApp(*load_toolsets(sys.argv[1]), is_exposed=False)
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on")).run(sockets=[listener])
"""


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder = tmp_path_factory.mktemp("mounted")
    command = [sys.executable, "-c", UVICORN, str(SAMPLE_TOOLS)]
    with child(command, cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield HttpServer(f"http://127.0.0.1:{int(process.stdout.readline())}", process)
        process.terminate()
        process.wait(30)
    assert (folder / "runs").is_dir()  # the log, which it closed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with http_server(cwd=tmp_path_factory.mktemp("served")) as served:
        yield served


def message(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


JSON = {"content_type": "application/json"}
STATELESS = {**JSON, "mcp_protocol_version": "2026-07-28", "mcp_method": "tools/list"}
CALL = json.dumps({"session_id": "s", "tool_id": "echo", "args": {"text": "hi"}}).encode()

# The path, the body and the headers of a request, and the status that it gets.
REQUESTS: dict[str, tuple[str, bytes | None, dict[str, str], int]] = {
    "a page": ("/", None, {}, 200),
    "health": ("/health", None, {}, 200),
    "tools": ("/tools", None, {}, 200),
    "a call at /execute": ("/execute", CALL, JSON, 200),
    "a call at its own path": ("/tools/echo", b'{"session_id": "s", "args": {"text": "hi"}}', JSON, 200),
    "a call at /rpc": ("/rpc", invoke("echo", {"text": "hi"}), JSON, 200),
    "a handshake": ("/mcp", message("initialize", **handshake("2025-11-25")), JSON, 200),
    "without a handshake": ("/mcp", message("tools/list", _meta=STATELESS_META), STATELESS, 200),
    "no JSON": ("/rpc", b"{", JSON, 400),
    "too large": ("/rpc", b" " * 1_048_577, JSON, 413),
    "another type": ("/rpc", b"{}", {"content_type": "text/plain"}, 415),
    "compressed": ("/rpc", b"{}", {**JSON, "content_encoding": "gzip"}, 415),
    "another charset": ("/rpc", b"{}", {"content_type": "application/json; charset=utf-16"}, 415),
    "a foreign host": ("/execute", CALL, {**JSON, "host": "evil.test"}, 403),
    "a foreign origin": ("/mcp", message("ping"), {**JSON, "origin": "http://evil.test"}, 403),
    "an unknown path": ("/nothing", None, {}, 404),
    "a decoded path": ("/%74ools", None, {}, 200),
    "an unresolved path": ("/x/../tools", None, {}, 404),
    "a wrong method": ("/execute", None, {}, 405),
}

# What is different in every answer.
VOLATILE = ("request_id", "trace_id", "latency_ms", "run_id", "duration_ms", "checks")


def stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: stable(each) for name, each in value.items() if name not in VOLATILE}
    return [stable(each) for each in value] if isinstance(value, list) else value


@pytest.mark.covers("design.http-server.asgi")
@pytest.mark.parametrize("case", REQUESTS)
def test_both_servers_give_the_same_answer(mounted: HttpServer, server: HttpServer, case: str) -> None:
    path, body, headers, status = REQUESTS[case]
    ours, theirs = (each.request(path, body, **headers) for each in (server, mounted))
    assert (ours.status, theirs.status) == (status, status)
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    assert ours.headers.get("allow") == theirs.headers.get("allow")
    if ours.headers["content-type"] == "application/json":
        assert stable(ours.json) == stable(theirs.json)


def test_a_sender_that_leaves_midway_disturbs_nobody_there_either(mounted: HttpServer) -> None:
    host, port = mounted.url.removeprefix("http://").split(":")
    body = invoke("echo", {"text": "hi"})
    with socket.create_connection((host, int(port)), timeout=30) as raw:
        raw.sendall(
            b"POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body) + 5, body)
        )
    assert mounted.rpc(body).status == 200


def test_a_mounted_application_finds_its_routes_below_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def main() -> None:
        app = MountedApp(is_exposed=False)
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/portbook/livez",
            "root_path": "/portbook",
            "headers": [(b"host", b"localhost")],
        }
        await app(scope, receive, send)
        await app.close()
        await app.close()  # nothing is left to close

    asyncio.run(main())
    assert sent[0]["status"] == 200
