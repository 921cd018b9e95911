"""A server that stops: calls whose client has left end, and nothing is waited for in vain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import HttpServer, http_server
from support.running_processes import wait_until

# A stop waits 40 seconds for calls; whoever waits in vain is seen well before.
IN_TIME_S = 25

TOOLS = """
import asyncio
from pathlib import Path

from portbook import Toolset

toolset = Toolset("gated")


@toolset.tool(effect="write", task="optional")
async def gated() -> str:
    Path("begun").touch()
    while not Path("gate").exists():
        await asyncio.sleep(0.01)
    Path("ended").touch()
    return "through the gate"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gated.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text("[server]\nlegacy_sse = true\n")
    return tmp_path


@pytest.fixture
def served(folder: Path) -> Iterator[HttpServer]:
    with http_server(cwd=folder, tools=("gated.py",)) as server:
        yield server


class Client:
    """A client with a connection for each request."""

    def __init__(self, url: str, revision: str = "2025-11-25") -> None:
        self._address = url.removeprefix("http://")
        self.headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        self.hello = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }

    def send(self, path: str, body: Any = None) -> tuple[HTTPConnection, HTTPResponse]:
        connection = HTTPConnection(self._address, timeout=60)
        data = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, self.headers)
        return connection, connection.getresponse()

    def ask(self, path: str, method: str, **params: Any) -> tuple[HTTPConnection, HTTPResponse]:
        return self.send(path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def told(self, path: str, method: str, **params: Any) -> HTTPResponse:
        connection, response = self.ask(path, method, **params)
        response.body = response.read()  # type: ignore[attr-defined]
        connection.close()
        return response

    def open(self) -> None:
        greeted = self.told("/mcp", "initialize", **self.hello)
        self.headers["mcp-session-id"] = str(greeted.getheader("mcp-session-id"))


def event_of(stream: HTTPResponse) -> str:
    """Return the data of the next event that has some."""
    while not (line := stream.readline()).startswith(b"data: {"):
        assert line, "the stream has ended"
    return line.decode()


def leave_in_the_middle(client: Client, method: str, **params: Any) -> None:
    """Send a request, read the first event of its stream, and hang up."""
    connection, stream = client.ask("/mcp", method, **params)
    assert stream.readline().startswith(b"id:")
    stream.close()
    connection.close()


@pytest.mark.covers("design.mcp-http.legacy-sse-stop")
def test_a_server_that_stops_answers_on_the_streams_of_2024_11_05_before_it_ends_them(
    served: HttpServer, folder: Path
) -> None:
    client = Client(served.url, "2024-11-05")
    connection, stream = client.send("/sse")
    while not (line := stream.readline()).startswith(b"data: "):
        assert line
    place = line.removeprefix(b"data: ").decode().strip()
    assert client.told(place, "initialize", **client.hello).status == 202
    assert "protocolVersion" in event_of(stream)
    assert client.told(place, "tools/call", name="gated", arguments={}).status == 202
    wait_until((folder / "begun").exists)
    served.process.terminate()
    # Nobody can connect any more: the stop has begun.
    wait_until(lambda: not _is_listening(served))
    (folder / "gate").touch()
    assert "through the gate" in event_of(stream)
    assert not any(line.startswith(b"data:") for line in stream)
    connection.close()
    assert served.process.wait(IN_TIME_S) == 0


@pytest.mark.covers("design.mcp.task-result-stop")
def test_a_stop_does_not_wait_for_the_result_of_a_task_whose_client_left(
    served: HttpServer, folder: Path
) -> None:
    client = Client(served.url)
    client.open()
    created = client.told("/mcp", "tools/call", name="gated", arguments={}, task={"ttl": 60_000})
    task = json.loads(created.body)["result"]["task"]["taskId"]  # type: ignore[attr-defined]
    leave_in_the_middle(client, "tasks/result", taskId=task)
    served.process.terminate()
    assert served.process.wait(IN_TIME_S) == 0


def _is_listening(served: HttpServer) -> bool:
    connection = HTTPConnection(served.url.removeprefix("http://"), timeout=60)
    try:
        connection.connect()
    except OSError:
        return False
    connection.close()
    return True
