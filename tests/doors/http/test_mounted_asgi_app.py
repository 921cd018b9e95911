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

from portbook import MountedApp, Toolset
from portbook.audit.memory_sink import MemorySink
from support.in_process_connection import STATELESS_META, handshake
from support.mcp_http_client import Client, run
from support.portbook_process import SAMPLE_TOOLS, HttpServer, child, http_server, invoke, records

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


@pytest.mark.covers("design.http-server.asgi-stop")
def test_a_call_whose_client_left_ends_before_the_application_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    toolset = Toolset("gated")

    async def main() -> None:
        begun, gate = asyncio.Event(), asyncio.Event()

        @toolset.tool(effect="read")
        async def gated() -> str:
            begun.set()
            await gate.wait()
            return "through the gate"

        app = MountedApp(toolset, is_exposed=False)
        client = Client(app._app, MemorySink())
        client._app = app
        await client.open("2025-11-25")
        calling = client.ask("tools/call", {"name": "gated", "arguments": {}})
        await calling.until(lambda: b"id:" in calling.body)  # from here on, it can resume
        await calling.leave()
        assert begun.is_set()
        closing = asyncio.create_task(app.close())
        # Much longer than everything else takes that is closed.
        assert not (await asyncio.wait((closing,), timeout=1))[0]
        gate.set()
        await closing

    run(main())
    [record] = [each for each in records(tmp_path / "runs") if each["metadata"]["toolId"]]
    assert record["status"] == "ok"


class Asked:
    """One request to an ASGI application, whose client stays connected."""

    def __init__(self, app: MountedApp, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        path, _, query = path.partition("?")
        lines = {"host": "localhost", "content-type": "application/json", "accept": "text/event-stream"}
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in {**lines, **headers}.items()],
        }
        self._body: list[bytes] = [body]
        self._stays = asyncio.Event()
        self.status = 0
        self.said = b""
        self.answering = asyncio.create_task(app(self._scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if not self._body:
            await self._stays.wait()
        return {"type": "http.request", "body": self._body.pop()}

    async def _send(self, event: Any) -> None:
        self.status = event.get("status", self.status)
        self.said += event.get("body", b"")

    async def until(self, part: bytes) -> None:
        while part not in self.said:
            await asyncio.sleep(0.01)


HELLO = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.mark.covers("design.http-server.asgi-stop-sse")
@pytest.mark.parametrize("patience_s", [40.0, 0.2], ids=["ends in time", "takes too long"])
def test_a_call_over_http_and_sse_is_answered_or_cancelled_before_the_application_closes(
    patience_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("portbook.doors.http.mounted_asgi_app._GRACE_S", patience_s)
    (tmp_path / "portbook.toml").write_text("[server]\nlegacy_sse = true\n")
    toolset = Toolset("gated")
    ends_in_time = patience_s > 1

    async def main() -> None:
        begun, gate = asyncio.Event(), asyncio.Event()

        @toolset.tool(effect="write")
        async def gated() -> str:
            begun.set()
            await gate.wait()
            return "through the gate"

        app = MountedApp(toolset, config="portbook.toml", is_exposed=False)
        stream = Asked(app, "GET", "/sse")
        await stream.until(b"\n\n")
        place = stream.said.partition(b"data: ")[2].split()[0].decode()
        hello = message("initialize", protocolVersion="2024-11-05", **HELLO)
        await Asked(app, "POST", place, hello).answering
        call = message("tools/call", name="gated", arguments={})
        await Asked(app, "POST", place, call).answering
        await begun.wait()
        closing = asyncio.create_task(app.close())
        await asyncio.sleep(0)
        late = Asked(app, "POST", place, call)
        await late.answering
        assert late.status == 503  # what ends takes no more calls
        if ends_in_time:
            gate.set()
        await closing
        await stream.answering
        assert (b"through the gate" in stream.said) is ends_in_time

    run(main())
    [record] = [each for each in records(tmp_path / "runs") if each["metadata"]["toolId"]]
    assert record["status"] == ("ok" if ends_in_time else "error")


@pytest.mark.covers("design.http-server.asgi-stop-tasks")
def test_who_waits_for_the_result_of_a_task_is_answered_before_the_application_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    toolset = Toolset("gated")

    async def main() -> None:
        @toolset.tool(effect="read", task="optional")
        async def gated() -> str:
            await asyncio.Event().wait()
            return "never"

        app = MountedApp(toolset, is_exposed=False)
        client = Client(app._app, MemorySink())
        client._app = app
        await client.open("2025-11-25")
        created = await client.ask("tools/call", {"name": "gated", "arguments": {}, "task": {}}).ended()
        task = json.loads(created.body)["result"]["task"]["taskId"]
        waiting = client.ask("tasks/result", {"taskId": task})
        await asyncio.sleep(0.1)
        await app.close()
        assert b"error" in (await waiting.ended()).body

    run(main())
