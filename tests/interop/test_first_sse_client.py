"""The first published client of the official Python SDK connects over HTTP+SSE."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support import sdks
from support.portbook_process import environment, http_server

PROGRAM = """
import asyncio, json, sys
from mcp import ClientSession
from mcp.client.sse import sse_client

async def main():
    async with sse_client(sys.argv[1]) as (reading, writing), ClientSession(reading, writing) as session:
        greeted = await session.initialize()
        listed = await session.list_tools()
        called = await session.call_tool("echo", {"text": "hello"})
        names = [tool.name for tool in listed.tools]
        print(json.dumps([greeted.protocolVersion, names, called.content[0].text]))

asyncio.run(main())
"""


@pytest.mark.timeout(300)
def test_it_lists_and_calls_tools(tmp_path: Path) -> None:
    try:
        python = sdks.first_python_sdk()
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    (tmp_path / "portbook.toml").write_text("[server]\nlegacy_sse = true\n")
    with http_server(cwd=tmp_path) as server:
        command = [str(python), "-c", PROGRAM, f"{server.url}/sse"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    revision, tools, text = json.loads(done.stdout)
    assert (revision, "echo" in tools, text) == ("2024-11-05", True, "hello")


def test_it_is_off_unless_the_operator_wants_it(tmp_path: Path) -> None:
    with http_server(cwd=tmp_path) as server:
        assert server.request("/sse").status == 404
