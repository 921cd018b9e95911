"""No call holds the others: large values are redacted beside them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from support.in_process_connection import META, params
from support.portbook_process import PORTBOOK, child

REVISION = "2026-07-28"

TOOLS = """
from portbook import Context, ToolError, Toolset

tools = Toolset("costly")

@tools.tool(effect="read", inline=True)
def large() -> str:
    return "token: " * 150_000

@tools.tool(effect="read", inline=True)
def large_error() -> str:
    raise ToolError("no", code="no", data={"text": "token: " * 130_000})

@tools.tool(effect="read")
async def large_question(context: Context) -> str:
    return (await context.elicit("token: " * 130_000)).action

@tools.tool(effect="read", inline=True)
def small() -> str:
    return "small"
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
@pytest.mark.parametrize("tool", ["large", "large_error", "large_question"])
def test_a_call_is_answered_while_a_large_value_is_redacted(
    server: subprocess.Popen[bytes], tool: str
) -> None:
    incoming, outgoing = streams(server)
    asked = {META + "clientCapabilities": {"elicitation": {}}}
    incoming.write(frame(1, tool, {}, **asked) + frame(2, "small", {}))
    incoming.flush()
    assert [json.loads(outgoing.readline())["id"] for _ in range(2)] == [2, 1]
