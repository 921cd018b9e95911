"""Reports of tools, over STDIO and HTTP: whoever reads gets all, whoever does not holds nobody up.

The tools report as fast as they can, in a thread and on the event loop.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from portbook.mcp.report_queue import MAX_BYTES, MAX_REPORTS
from support.in_process_connection import META, params
from support.portbook_process import PORTBOOK, child, http_server

REVISION = "2026-07-28"

TOOLS = """
import asyncio
from pathlib import Path

from portbook import Context, Toolset

tools = Toolset("chatty")

@tools.tool(effect="read")
def thread(reports: int, fifo: str, context: Context) -> str:
    for number in range(reports):
        context.progress(number + 1, reports, "x" * 1000)
        context.log("info", {"number": number + 1, "text": "x" * 1000})
    with open(fifo, "w"):
        return "done"

@tools.tool(effect="read")
async def coroutine(reports: int, fifo: str, context: Context) -> str:
    for number in range(reports):
        await context.progress(number + 1, reports, "x" * 1000)
        await context.log("info", {"number": number + 1, "text": "x" * 1000})
    with await asyncio.to_thread(open, fifo, "w"):
        return "done"

@tools.tool(effect="read")
async def until_stopped(reports: int, stop: str, context: Context) -> bool:
    for number in range(reports):
        await context.progress(number, reports, "x" * 1000)
        if Path(stop).exists():
            return True
    return False

@tools.tool(effect="read", inline=True)
def stop(stop: str) -> None:
    Path(stop).touch()
"""


class Door(Protocol):
    """A way to call tools, whose messages are read one by one, or not at all."""

    def call(self, tool: str, **arguments: Any) -> Iterator[dict[str, Any]]: ...


class Stdio:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._calls = 0

    def call(self, tool: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._calls += 1
        self._process.stdin.write(request(tool, arguments, self._calls) + b"\n")
        self._process.stdin.flush()
        return map(json.loads, self._process.stdout)


class Http:
    def __init__(self, url: str) -> None:
        self._host = url.removeprefix("http://")
        self.responses: list[http.client.HTTPResponse | http.client.HTTPConnection] = []

    def call(self, tool: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        client = http.client.HTTPConnection(self._host, timeout=60)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        client.request("POST", "/mcp", request(tool, arguments, 1), headers)
        self.responses.append(client)
        return self._messages(client)

    def _messages(self, client: http.client.HTTPConnection) -> Iterator[dict[str, Any]]:
        response = client.getresponse()
        self.responses.append(response)
        for line in response:
            if line.startswith((b"data: {", b"{")):
                yield json.loads(line.removeprefix(b"data: "))


def request(tool: str, arguments: dict[str, Any], number: int) -> bytes:
    meta = {"progressToken": 7, META + "logLevel": "debug"}
    given = params(REVISION, name=tool, arguments=arguments, _meta=meta)
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": given}).encode()


@contextmanager
def stdio(folder: Path) -> Iterator[Door]:
    command = [*PORTBOOK, "serve", "--stdio", "tools.py"]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with child(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=nothing) as process:
        yield Stdio(process)


@contextmanager
def over_http(folder: Path) -> Iterator[Door]:
    with http_server(cwd=folder, tools=("tools.py",)) as server:
        door = Http(server.url)
        yield door
        for response in door.responses:
            response.close()


@pytest.fixture(params=[stdio, over_http], ids=["stdio", "http"])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    (tmp_path / "tools.py").write_text(TOOLS)
    with request.param(tmp_path) as opened:
        yield opened


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def ended(messages: Iterator[dict[str, Any]]) -> tuple[list[Any], list[Any], Any]:
    """Read to the answer: the numbers of progress and log reports, and the result."""
    progress, logs = [], []
    for message in messages:
        if "id" in message:
            return progress, logs, message["result"]["structuredContent"]
        given = message["params"]
        if "progress" in given:
            progress.append(given["progress"])
        else:
            logs.append(given["data"]["number"])
    raise AssertionError("no answer")


@pytest.mark.covers("mcp.reports.wait")
@pytest.mark.parametrize("tool", ["thread", "coroutine"])
def test_a_client_that_reads_gets_every_report(door: Door, fifo: Path, tool: str) -> None:
    several = 2 * MAX_REPORTS  # more than may wait
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        progress, logs, result = ended(door.call(tool, reports=several, fifo=str(fifo)))
    finally:
        os.close(reader)
    assert (progress, logs, result) == ([*range(1, several + 1)], [*range(1, several + 1)], "done")


@pytest.mark.covers("mcp.reports.bounded")
@pytest.mark.parametrize("tool", ["thread", "coroutine"])
def test_for_a_client_that_does_not_read_the_newest_few_reports_wait(
    door: Door, fifo: Path, tool: str
) -> None:
    many = 20_000
    messages = door.call(tool, reports=many, fifo=str(fifo))
    with fifo.open():  # the tool has reported everything, and was not kept from it
        pass
    progress, logs, result = ended(messages)
    assert (progress[-1], logs[-1], result) == (many, many, "done")
    # The last ones waited as they are sent, without a gap: half of the queue is of each kind.
    waited = MAX_BYTES // 2 // 1100
    assert progress[-waited:] == [*range(many - waited + 1, many + 1)]
    # Before them, the first ones, until buffers were full: those of the system take some megabytes.
    assert len(progress) + len(logs) < many // 2


@pytest.mark.covers("mcp.reports.steps")
def test_a_tool_that_only_reports_lets_other_calls_run(door: Door, tmp_path: Path) -> None:
    stop = str(tmp_path / "stop")
    first = door.call("until_stopped", reports=100_000, stop=stop)
    messages = door.call("stop", stop=stop)
    results = [answer["result"]["structuredContent"] for answer in take_answers(first, messages)]
    assert results == [None, True]


def take_answers(*streams: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The answers of two calls, the latter's first: over STDIO both come in one stream."""
    for stream in reversed(streams):
        yield next(message for message in stream if "id" in message)
