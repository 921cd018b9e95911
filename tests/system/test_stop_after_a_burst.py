"""SIGTERM right after a burst of calls: each call that began has its answer and its record, just once."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, child

CALLS = 300

TOOLS = """
import asyncio
from portbook import Toolset

toolset = Toolset("burst")

@toolset.tool(effect="read")
async def at_once(number: int) -> dict[str, int]:
    return {"number": number}

@toolset.tool(effect="read")
async def later(number: int) -> dict[str, int]:
    await asyncio.sleep(0)
    return {"number": number}

@toolset.tool(effect="write")
def in_a_thread(number: int) -> dict[str, int]:
    return {"number": number}
"""

INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}


def _frame(identifier: object, method: str, params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


@pytest.mark.parametrize("tool", ["at_once", "later", "in_a_thread"])
def test_every_call_that_began_is_answered_and_recorded(tmp_path: Path, tool: str) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    burst = b"".join(
        _frame(number, "tools/call", {"name": tool, "arguments": {"number": number}})
        for number in range(1, CALLS + 1)
    )
    with child(
        [*PORTBOOK, "serve", "--stdio", "tools.py", "--log-dir", "logs"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_frame("start", "initialize", INITIALIZE))
        process.stdin.flush()
        assert b"protocolVersion" in process.stdout.readline()
        process.stdin.write(burst)
        process.stdin.flush()
        first = process.stdout.readline()  # the burst has begun
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(60) == 0
    answers = [json.loads(line) for line in (first + rest).splitlines()]
    answered = [answer["result"]["structuredContent"]["number"] for answer in answers]
    assert len(set(answered)) == len(answered)
    log = tmp_path / "logs/mcp_server/execution/execution.latest.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    recorded = [record for record in records if record["tool_id"] == f"mcp.tool:{tool}"]
    assert len(recorded) == len(answered) > 0
    assert {record["status_code"] for record in recorded} == {200}
