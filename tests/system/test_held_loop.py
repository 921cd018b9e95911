"""No call holds the others: large results are redacted beside them, and reports wait for their reader."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from portbook.mcp.outlet import MAX_BYTES
from support.in_process_connection import params
from support.portbook_process import PORTBOOK, child

REVISION = "2026-07-28"
REPORTS = 5_000

TOOLS = """
from portbook import Context, Toolset

tools = Toolset("costly")

@tools.tool(effect="read", inline=True)
def large() -> str:
    return "token: " * 150_000

@tools.tool(effect="read", inline=True)
def small() -> str:
    return "small"

@tools.tool(effect="read")
def chatty(reports: int, fifo: str, context: Context) -> str:
    for number in range(reports):
        context.progress(number + 1, reports, "x" * 1000)
        context.log("info", {"number": number + 1, "text": "x" * 1000})
    with open(fifo, "w"):  # waits for its reader: only now does the client read
        return "done"
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "tools.py").write_text(TOOLS)
    with child(
        [*PORTBOOK, "serve", "--stdio", "tools.py"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        yield process


def frame(number: int, tool: str, arguments: dict[str, Any], **meta: Any) -> bytes:
    given = params(REVISION, name=tool, arguments=arguments, _meta=meta)
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": given}
    return json.dumps(message).encode() + b"\n"


def streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


@pytest.mark.covers("mcp.loop.large-results")
def test_a_call_is_answered_while_a_large_result_is_redacted(server: subprocess.Popen[bytes]) -> None:
    incoming, outgoing = streams(server)
    incoming.write(frame(1, "large", {}) + frame(2, "small", {}))
    incoming.flush()
    assert [json.loads(outgoing.readline())["id"] for _ in range(2)] == [2, 1]


@pytest.mark.covers("mcp.reports.wait")
def test_reports_wait_for_their_reader_and_are_bounded(
    server: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    incoming, outgoing = streams(server)
    level = {"io.modelcontextprotocol/logLevel": "debug"}
    arguments = {"reports": REPORTS, "fifo": str(fifo)}
    incoming.write(frame(1, "chatty", arguments, progressToken=7, **level))
    incoming.flush()
    with fifo.open():  # the tool has reported everything
        pass
    lines = [outgoing.readline()]
    while "id" not in json.loads(lines[-1]):
        lines.append(outgoing.readline())
    *reports, answer = map(json.loads, lines)
    assert answer["result"]["structuredContent"] == "done"
    assert [report["params"]["progress"] for report in reports if "progress" in report["params"]][
        -1
    ] == REPORTS
    assert [report["params"]["data"]["number"] for report in reports if "data" in report["params"]][
        -1
    ] == REPORTS
    # The pipe, the batch that waits for it, the next batch, and the queue of the call.
    assert sum(map(len, lines)) < 5 * MAX_BYTES
