"""Calls that arrive together are recorded together: each has its record, or an error instead of a result."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path
from typing import Any

from support.portbook_process import PORTBOOK, child

TOOLS = """
from portbook import Toolset

toolset = Toolset("burst")

@toolset.tool(effect="read", inline=True)
def number(number: int) -> dict[str, int]:
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


def test_a_record_that_cannot_be_written_fails_exactly_its_own_call(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
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
    assert [answer["id"] for answer in answers] == ["start", *range(1, CALLS + 1)]
    given = [answer["id"] for answer in answers[1:] if "structuredContent" in answer.get("result", {})]
    logs = tmp_path / "logs/mcp_server"
    views = [logs / f"{name}/{name}.latest.jsonl" for name in ("execution", "envelope_validation")]
    complete = [[json.loads(line) for line in view.read_bytes().splitlines()] for view in views]
    recorded = min(sum(record.get("method", "") != "initialize" for record in view) for view in complete)
    assert 0 < len(given) < CALLS
    assert len(given) <= recorded <= len(given) + 1  # the first stream may hold one more than the second
