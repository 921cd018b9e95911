"""`python -m bench.mcp_http`: Portbook against the official Python SDK, both as MCP servers over HTTP.

The same echo tool, the same requests, in turns, over connections that are kept: in a session of 2025-11-25,
and each for itself in 2026-07-28. What counts is the processor time of the server for one call, for that does
not depend on how fast the client is. The SDK answers with JSON, as Portbook does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from bench.children import WrongAnswer, cpu_seconds
from bench.sdk import INTEROP, sdk_python

__all__ = ["main"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_META: Final = "io.modelcontextprotocol/"
_CONNECTIONS: Final = 4
_REVISIONS: Final = ("2025-11-25", "2026-07-28")


class _Sample(NamedTuple):
    cpu_us: float
    calls_per_second: float


def main() -> int:
    """Measure, print and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.mcp_http", description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000, help="calls a run (default: 2000)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each server (default: 5)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    if sys.platform != "linux":
        sys.exit("bench.mcp_http: the processor time of another process is told on Linux alone")
    samples: dict[tuple[str, str], list[_Sample]] = {}
    with TemporaryDirectory(prefix="portbook-bench-") as folder:
        for _ in range(options.rounds):
            for name in ("portbook", "python sdk"):
                with _serving(name, Path(folder)) as (pid, port):
                    for revision in _REVISIONS:
                        sample = _measure(pid, port, revision, options.calls)
                        samples.setdefault((revision, name), []).append(sample)
    _print(samples, as_json=options.json)
    return 0


@contextlib.contextmanager
def _serving(name: str, folder: Path) -> Generator[tuple[int, int]]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    serve = [sys.executable, "-m", "portbook", "serve", "--http", "--port", str(port), "bench/echo_tools.py"]
    commands = {
        "portbook": [*serve, "--config", "bench/portbook.toml", "--log-dir", str(folder)],
        "python sdk": [sdk_python(), str(INTEROP / "python_echo_server.py"), "--http", str(port)],
    }
    own = {"PORTBOOK_STORE": str(folder / "portbook.db")}
    with subprocess.Popen(
        commands[name], cwd=_ROOT, env=os.environ | own, stderr=subprocess.DEVNULL
    ) as child:
        try:
            _await(port)
            yield child.pid, port
        finally:
            child.kill()


def _await(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _measure(pid: int, port: int, revision: str, calls: int) -> _Sample:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if revision == _REVISIONS[0]:
        client = _Connection(port)
        hello = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        session, _ = client.exchange(_request(headers, _message("initialize", 0, hello)))
        headers |= {"mcp-session-id": session, "mcp-protocol-version": revision}
        client.exchange(_request(headers, b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
        client.close()
    else:
        headers |= {"mcp-protocol-version": revision, "mcp-method": "tools/call", "mcp-name": "echo"}
    requests = [_request(headers, _call(revision, number)) for number in range(1, calls + 1)]
    connections = [_Connection(port) for _ in range(_CONNECTIONS)]
    for connection in connections:  # what happens once is not what is measured
        _check(connection.exchange(_request(headers, _call(revision, calls + 1)))[1], calls + 1)
    before, cpu_before = time.perf_counter(), cpu_seconds(pid)
    for start in range(0, calls, _CONNECTIONS):
        numbers = range(start + 1, min(start + _CONNECTIONS, calls) + 1)
        for number, connection in zip(numbers, connections, strict=False):
            connection.send(requests[number - 1])
        for number, connection in zip(numbers, connections, strict=False):
            _check(connection.receive()[1], number)
    elapsed, cpu_after = time.perf_counter() - before, cpu_seconds(pid)
    for connection in connections:
        connection.close()
    assert cpu_before is not None
    assert cpu_after is not None
    return _Sample((cpu_after - cpu_before) / calls * 1e6, calls / elapsed)


def _call(revision: str, number: int) -> bytes:
    params: dict[str, Any] = {"name": "echo", "arguments": {"text": f"message {number}"}}
    if revision != _REVISIONS[0]:
        capabilities: dict[str, Any] = {}
        params["_meta"] = {
            _META + "protocolVersion": revision,
            _META + "clientCapabilities": capabilities,
            _META + "clientInfo": {"name": "bench", "version": "1"},
        }
    return _message("tools/call", number, params)


def _message(method: str, identifier: int, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


def _request(headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = ["POST /mcp HTTP/1.1", "host: 127.0.0.1:80", f"content-length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body


def _check(body: bytes, number: int) -> None:
    answer = json.loads(body)
    if answer["id"] != number or f"message {number}" not in answer["result"]["content"][0]["text"]:
        raise WrongAnswer("a call was not answered with its echo")


class _Connection:
    """One connection that is kept, and answers with a length."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def exchange(self, request: bytes) -> tuple[str, bytes]:
        self.send(request)
        return self.receive()

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> tuple[str, bytes]:
        """Return the session that an answer names, and its body."""
        status = self._file.readline().split(b" ", 2)[1]
        length, session = 0, ""
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            if name.lower() == "content-length":
                length = int(value)
            elif name.lower() == "mcp-session-id":
                session = value.strip()
        if status not in (b"200", b"202"):
            raise WrongAnswer(f"a request was answered with {status.decode()}")
        return session, self._file.read(length)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def _print(samples: dict[tuple[str, str], list[_Sample]], *, as_json: bool) -> None:
    medians = {
        which: _Sample(*(statistics.median(column) for column in zip(*own, strict=True)))
        for which, own in samples.items()
    }
    ratios = {
        revision: medians[revision, "python sdk"].cpu_us / medians[revision, "portbook"].cpu_us
        for revision in _REVISIONS
    }
    if as_json:
        rows = [
            {"revision": revision, "server": name, **median._asdict()}
            for (revision, name), median in medians.items()
        ]
        print(json.dumps({"medians": rows, "ratios": ratios}, indent=2))
        return
    print(f"{'':12} {'':12} {'server CPU a call, µs':>22} {'calls per second':>18}")
    for (revision, name), median in sorted(medians.items()):
        print(f"{revision:12} {name:12} {median.cpu_us:22.0f} {median.calls_per_second:18,.0f}")
    for revision, ratio in ratios.items():
        print(f"{revision}: the SDK takes {ratio:.1f} times the processor time.")


if __name__ == "__main__":
    sys.exit(main())
