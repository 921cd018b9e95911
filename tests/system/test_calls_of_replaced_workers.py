"""Calls of workers that a reload replaces: they end, though their client is away or has yet to answer."""

from __future__ import annotations

import json
import signal
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from support.supervised_workers import PATIENCE_S, TOOLS, Workers, is_running, wait_until, workers

ASKING = """

from portbook import Context


@toolset.tool(effect="read")
async def ask(context: Context) -> str:
    answer = await context.elicit("Who?", {"properties": {"name": {"type": "string"}}, "required": ["name"]})
    return "hello " + answer.content["name"]
"""

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "t", "version": "1"},
}


class McpClient:
    """A client in one session, with a connection for each request."""

    def __init__(self, served: Workers) -> None:
        self._served = served
        self.headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2025-11-25",
        }
        opened = self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
        self.headers["mcp-session-id"] = str(opened.getheader("mcp-session-id"))
        opened.read()

    def send(self, message: Any = None, **headers: str) -> HTTPResponse:
        connection = HTTPConnection("127.0.0.1", self._served.port, timeout=PATIENCE_S)
        self._served.opened.append(connection)
        body = None if message is None else json.dumps(message)
        given = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET" if body is None else "POST", "/mcp", body, given)
        return connection.getresponse()

    def call(self, identifier: int, tool: str, **arguments: str) -> HTTPResponse:
        params = {"name": tool, "arguments": arguments}
        return self.send({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params})


def value_after(response: HTTPResponse, name: bytes, part: bytes = b"") -> str:
    """Read a stream until a line that begins with a name and has a part; return the rest of it."""
    while not ((line := response.readline()).startswith(name) and part in line):
        assert line, "the stream has ended"
    return line[len(name) :].strip().decode()


@pytest.mark.covers("design.workers.reload")
def test_a_replaced_worker_ends_the_call_of_a_client_that_is_away_and_hears_the_answer_of_another(
    tmp_path: Path,
) -> None:
    with workers(tmp_path, 2, tools=TOOLS + ASKING) as served:
        old = set(served.each())
        served.close()
        client = McpClient(served)
        asked = client.call(1, "ask")
        question = json.loads(value_after(asked, b"data:", b"elicitation"))
        left = client.call(2, "wait", name="away")
        last = value_after(left, b"id:")
        left.close()
        served.opened.pop().close()
        served.process.send_signal(signal.SIGHUP)
        served.told("reloaded: every worker is new")

        answer = {"action": "accept", "content": {"name": "Ada"}}
        assert client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer}).status == 202
        assert "hello Ada" in value_after(asked, b"data:")
        served.let_go("away")
        resumed = json.loads(value_after(client.send(last_event_id=last), b"data:"))
        assert resumed["result"]["structuredContent"]["result"] in old
        served.close()
        wait_until(lambda: not any(map(is_running, old)), lambda: "the old workers do not end")
