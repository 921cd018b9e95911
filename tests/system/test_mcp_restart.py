"""A server is replaced while sessions of the handshake era are in use: they go on, all of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from support.counts import count
from support.in_process_connection import handshake
from support.portbook_process import http_server

SESSIONS = 8
DEADLINE_S = 60


class Caller(threading.Thread):
    """Calls in one session, over and over, and tries again where nobody answers."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = f"{url}/mcp"
        self.headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        self.done = 0
        self.statuses: set[int] = set()
        self.wrong: list[object] = []
        self.is_over = threading.Event()
        params = handshake("2025-11-25")
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        status, headers, _ = self.post(hello)
        assert status == 200
        self.headers["mcp-session-id"] = headers["mcp-session-id"]

    def post(self, message: object) -> tuple[int, dict[str, str], Any]:
        body = json.dumps(message).encode()
        request = urllib.request.Request(self.url, body, self.headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return response.status, headers, json.loads(response.read())

    def run(self) -> None:
        while not self.is_over.is_set():
            text = f"call {self.done}"
            params = {"name": "echo", "arguments": {"text": text}}
            message = {"jsonrpc": "2.0", "id": self.done, "method": "tools/call", "params": params}
            try:
                status, _, answer = self.post(message)
            except urllib.error.HTTPError as error:
                with error:
                    self.statuses.add(error.code)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)  # between two servers nobody answers, or only half
            else:
                if answer["result"]["content"][0]["text"] != text:
                    self.wrong.append(answer)
                self.statuses.add(status)
                self.done += 1


def _wait_for_calls(callers: list[Caller], more: int) -> None:
    wanted = [caller.done + more for caller in callers]
    until = time.monotonic() + DEADLINE_S
    while any(caller.done < count for caller, count in zip(callers, wanted, strict=True)):
        assert time.monotonic() < until, [caller.done for caller in callers]
        time.sleep(0.01)


@pytest.mark.covers("design.mcp-http.restart-under-load")
@pytest.mark.soak("restarts")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_sessions_go_on_when_the_server_is_replaced_under_load(tmp_path: Path, how: signal.Signals) -> None:
    with contextlib.ExitStack() as servers:
        server = servers.enter_context(http_server(cwd=tmp_path))
        port = server.url.rpartition(":")[2]
        callers = [Caller(server.url) for _ in range(SESSIONS)]
        for caller in callers:
            caller.start()
        _wait_for_calls(callers, 5)
        for _ in range(count("restarts")):
            server.process.send_signal(how)
            server.process.wait(30)
            server = servers.enter_context(http_server("--port", port, cwd=tmp_path))
            _wait_for_calls(callers, 5)
        for caller in callers:
            caller.is_over.set()
        for caller in callers:
            caller.join(30)
    assert not any(caller.is_alive() for caller in callers)
    assert [caller.wrong for caller in callers] == [[]] * SESSIONS
    assert set().union(*(caller.statuses for caller in callers)) == {200}
