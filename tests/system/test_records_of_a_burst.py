"""Calls that arrive together are recorded together: each has its record, or an error instead of a result."""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, child, http_server

TOOLS = """
from portbook import Toolset

toolset = Toolset("burst")

@toolset.tool(effect="read", inline=True)
def number(number: int) -> dict[str, int]:
    return {"number": number}
"""

# Calls of this one wait, and end together.
WAITING = """
import asyncio
from portbook import Toolset

toolset = Toolset("burst")
gate = asyncio.Event()

@toolset.tool(effect="read")
async def number(number: int) -> dict[str, int]:
    if number == CALLS:
        gate.set()
    await gate.wait()
    return {"number": number}
"""

INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}

CALLS = 40

# Room for some of the records of a burst, in each stream.
ROOM = 12_000


def _frame(identifier: object, method: str, params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def _leave_little_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


@pytest.mark.parametrize("tools", [TOOLS, WAITING.replace("CALLS", str(CALLS))], ids=["at once", "waiting"])
def test_a_record_that_cannot_be_written_fails_exactly_its_own_call(tmp_path: Path, tools: str) -> None:
    (tmp_path / "tools.py").write_text(tools)
    frames = [
        _frame(number, "tools/call", {"name": "number", "arguments": {"number": number}})
        for number in range(1, CALLS + 1)
    ]
    with child(
        [*PORTBOOK, "serve", "--stdio", "tools.py", "--log-dir", "logs"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=_leave_little_room,
    ) as process:
        out, _ = process.communicate(_frame("start", "initialize", INITIALIZE) + b"".join(frames), 60)
    answers = [json.loads(line) for line in out.splitlines()]
    order = [answer["id"] for answer in answers]
    # Calls that wait may be answered in any order: the last one finds the gate open.
    assert (order if tools == TOOLS else [order[0], *sorted(order[1:])]) == ["start", *range(1, CALLS + 1)]
    given = [answer["id"] for answer in answers[1:] if "structuredContent" in answer.get("result", {})]
    assert 0 < len(given) < CALLS
    # The first stream may hold one more than the second.
    assert len(given) <= _recorded(tmp_path) <= len(given) + 1


def test_the_same_holds_for_the_members_of_a_batch(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    calls = [
        json.loads(_frame(number, "tools/call", {"name": "number", "arguments": {"number": number}}))
        for number in range(1, CALLS + 1)
    ]
    initialize = _frame("start", "initialize", {**INITIALIZE, "protocolVersion": "2025-03-26"})
    with child(
        [*PORTBOOK, "serve", "--stdio", "tools.py", "--log-dir", "logs"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=_leave_little_room,
    ) as process:
        out, _ = process.communicate(initialize + json.dumps(calls).encode() + b"\n", 60)
    _, answers = (json.loads(line) for line in out.splitlines())
    given = [answer for answer in answers if "content" in answer.get("result", {})]
    given = [answer for answer in given if not answer["result"].get("isError")]
    assert 0 < len(given) < CALLS
    assert len(given) <= _recorded(tmp_path) <= len(given) + 1


def test_the_same_holds_for_requests_of_many_connections(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    with http_server("--log-dir", "logs", cwd=tmp_path, tools=("tools.py",)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        connections = [socket.create_connection((host, int(port)), 30) for _ in range(CALLS)]
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (ROOM, ROOM))
        server.process.send_signal(signal.SIGSTOP)  # so that all of them are there when it looks again
        for number, connection in enumerate(connections):
            connection.sendall(_request(number))
        server.process.send_signal(signal.SIGCONT)
        bodies = [_body(connection) for connection in connections]
    given = [number for number, body in enumerate(bodies) if body.get("result") == {"number": number}]
    refused = [body["error"]["details"]["reason"] for body in bodies if body["error"] is not None]
    assert 0 < len(given) < CALLS
    assert set(refused) == {"NOT_RECORDED"}
    assert len(given) + len(refused) == CALLS
    assert len(given) <= _recorded(tmp_path) <= len(given) + 1


def _request(number: int) -> bytes:
    body = json.dumps({"session_id": "s", "tool_id": "number", "args": {"number": number}}).encode()
    head = "POST /execute HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


def _body(connection: socket.socket) -> dict[str, Any]:
    with connection, connection.makefile("rb") as answer:
        return json.loads(answer.read().partition(b"\r\n\r\n")[2])


def _recorded(folder: Path) -> int:
    """Return how many calls have a whole record in both streams."""
    logs = folder / "logs/mcp_server"
    views = [logs / f"{name}/{name}.latest.jsonl" for name in ("execution", "envelope_validation")]
    complete = [[json.loads(line) for line in view.read_bytes().splitlines()] for view in views]
    return min(sum(record.get("method", "") != "initialize" for record in view) for view in complete)
