"""MCP servers that take longer to start than the first list waits: calls that are meant for them wait."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import STATELESS_META
from support.mcp_peer import SMALL_SERVER, table
from support.portbook_process import HttpServer, http_server, records

# The second one's tools have their own names, without its alias.
SERVERS: tuple[tuple[str, tuple[str, ...]], ...] = (("slow", ()), ("bare", ("prefix = false",)))


def gated(gate: Path) -> str:
    """A command of the small server that starts it when the file `gate` is there."""
    waiting = f'until [ -e "{gate}" ]; do sleep 0.05; done; exec "$@"'
    return f"command = {json.dumps(['sh', '-c', waiting, 'sh', sys.executable, str(SMALL_SERVER)])}"


@pytest.fixture
def late(tmp_path: Path) -> Iterator[HttpServer]:
    """A Portbook whose first list was answered without its two servers, which have not started yet."""
    tables = (table(alias, gated(tmp_path / alias), "timeout_ms = 60_000", *more) for alias, more in SERVERS)
    (tmp_path / "portbook.toml").write_text("".join(tables))
    with http_server("--log-dir", str(tmp_path / "log"), cwd=tmp_path) as server:
        listed = {tool["tool_id"] for tool in server.request("/tools").json["tools"]}
        assert "mcp.tool:echo" in listed
        assert not [name for name in listed if name.startswith(("mcp.tool:slow", "mcp.tool:bare"))]
        yield server


def execute(server: HttpServer, tool: str) -> Any:
    body = {"tool_id": tool, "args": {"text": "hello"}, "session_id": "s"}
    return post(server, "/execute", body)


def rpc(server: HttpServer, tool: str) -> Any:
    params = {"tool": f"mcp.tool:{tool}", "input": {"text": "hello"}}
    return post(server, "/rpc", {"jsonrpc": "2.0", "id": 1, "method": "mcp.tool.invoke", "params": params})


def mcp(server: HttpServer, tool: str) -> Any:
    params = {"name": tool, "arguments": {"text": "hello"}, "_meta": STATELESS_META}
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": tool}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return post(server, "/mcp", message, accept="application/json, text/event-stream", **headers)


def post(server: HttpServer, path: str, body: dict[str, Any], **headers: str) -> Any:
    return server.request(path, json.dumps(body).encode(), content_type="application/json", **headers)


@pytest.mark.covers("design.servers.late_start")
def test_a_call_waits_for_the_server_that_may_serve_it_and_no_other_call_does(
    late: HttpServer, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(8) as threads:
        waiting: dict[str, Future[Any]] = {
            "rest": threads.submit(execute, late, "slow.echo"),
            "envelope": threads.submit(rpc, late, "slow.echo"),
            "MCP": threads.submit(mcp, late, "slow__echo"),
            "MCP, without an alias": threads.submit(mcp, late, "environment"),
        }
        # What is served already does not wait, and what no server that starts can have is unknown at once.
        assert execute(late, "echo").json["result"] == "hello"
        assert not any(each.done() for each in waiting.values())
        (tmp_path / "bare").touch()
        assert "result" in waiting.pop("MCP, without an alias").result(60).json
        assert execute(late, "elsewhere.echo").status == 404
        assert mcp(late, "nothing").json["error"]["code"] == -32602
        assert not any(each.done() for each in waiting.values())
        (tmp_path / "slow").touch()
        for dialect, answer in waiting.items():
            said = answer.result(60)
            assert said.status == 200, dialect
            assert "hello" in json.dumps(said.json), dialect
    own = [each for each in records(tmp_path / "log") if "mcp.tool:slow.echo" in json.dumps(each)]
    assert len({each["requestId"] for each in own}) == 3, own
