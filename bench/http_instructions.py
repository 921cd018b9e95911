"""The instructions of a call over HTTP: 32 connections, each with a request when the server looks.

The server is stopped while the requests are sent, so that one turn of its loop finds all of them: otherwise
how many it finds would depend on how busy the machine is.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from socket import socket
from typing import Final

from bench.callgrind import begin, between_marks, callgrind
from bench.child import Child
from bench.http_load import HttpCalls, call_of, connect, free_port, headers_of, receive, request_of
from bench.wire import frames

__all__ = ["HTTP_SCENARIOS", "count_over_http"]

HTTP_SCENARIOS: Final = {
    "/mcp, handshake": HttpCalls(64),
    "/mcp, 2026-07-28": HttpCalls(64, revision="2026-07-28"),
    "/rpc": HttpCalls(64, route="/rpc"),
    "/execute": HttpCalls(64, route="/execute"),
}

# Under callgrind, and beside other work, a start takes minutes.
_PATIENCE_S: Final = 500

# Every connection and every head has been seen, and every cache on the way is filled.
_WARM_UP: Final = 2


def count_over_http(serve: list[str], folder: Path) -> dict[str, int]:
    """Return the instructions of one call in each scenario; `serve` is the command without its options.

    Raises `Missing` without valgrind, `WrongAnswer` where an answer is not a success.
    """
    port = free_port()
    command = callgrind([sys.executable, *serve, "--http", "--port", str(port)], is_counting=False)
    store = {"PORTBOOK_STORE": str(folder / "portbook.db"), "PYTHONHASHSEED": "0"}
    with Child(command, folder, store) as child:
        with connect(port, _PATIENCE_S) as aside:
            headers = {name: headers_of(calls, aside) for name, calls in HTTP_SCENARIOS.items()}
            connections = [connect(port, _PATIENCE_S) for _ in range(HttpCalls(0).connections)]
            for name, calls in HTTP_SCENARIOS.items():
                for _ in range(_WARM_UP):
                    _all_at_once(child.pid, connections, _requests(calls, headers[name], len(connections)))
            begin(child.pid)
            _mark(aside)
            for name, calls in HTTP_SCENARIOS.items():
                for _ in range(calls.calls // len(connections)):
                    _all_at_once(child.pid, connections, _requests(calls, headers[name], len(connections)))
                _mark(aside)
            for connection in connections:
                connection.close()
        child.kill()
    counts = between_marks(folder)
    return {
        name: total // calls.calls
        for (name, calls), total in zip(HTTP_SCENARIOS.items(), counts, strict=False)
    }


def _requests(calls: HttpCalls, headers: dict[str, str], count: int) -> Iterable[bytes]:
    # Numbers of as many digits, as a client has that is not new: heads differ by the length of the body.
    return [request_of(headers, call_of(calls, 1_000 + at), calls.route) for at in range(count)]


def _all_at_once(pid: int, connections: list[socket], requests: Iterable[bytes]) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        for connection, request in zip(connections, requests, strict=True):
            connection.sendall(request)
    finally:
        os.kill(pid, signal.SIGCONT)
    for connection in connections:
        receive(connection)


def _mark(connection: socket) -> None:
    headers = headers_of(HttpCalls(1, route="/rpc"), connection)
    connection.sendall(request_of(headers, frames("envelope", "mark", [1])[0], "/rpc"))
    receive(connection)
