"""The load over HTTP: raw sockets that are kept, 32 of them, one request on each at a time."""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from bench.child import Child, WrongAnswer
from bench.crowd import Crowd
from bench.figures import Run
from bench.wire import REVISION, check, check_texts, greeting, initialized, message

__all__ = [
    "HttpCalls",
    "call_of",
    "connect",
    "exchange",
    "free_port",
    "headers_of",
    "measure_http",
    "receive",
    "request_of",
]

Route: TypeAlias = Literal["/mcp", "/rpc", "/execute"]

_META: Final = "io.modelcontextprotocol/"
_PATIENCE_S: Final = 60
_WARM_UP: Final = 64


@dataclass(frozen=True, slots=True)
class HttpCalls:
    """What is called over HTTP, how often, and in which revision of MCP."""

    calls: int
    revision: str = REVISION
    connections: int = 32
    route: Route = "/mcp"
    one_at_a_time: int = 0
    """Further calls, each after the answer to the last, whose duration is measured."""
    crowd: int = 0
    """So many silent connections, and as many slow ones, are there while one call at a time is measured."""
    listens_early: bool = False
    """Whether the server listens before it can answer, as a proxy does that reads its routes later."""

    @property
    def has_handshake(self) -> bool:
        """Return whether a session begins with `initialize`."""
        return self.revision == REVISION and self.route == "/mcp"


def free_port() -> int:
    """Return a port that nobody listens on at this moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def measure_http(
    command: Sequence[str], folder: Path, extra: dict[str, str], port: int, calls: HttpCalls
) -> Run:
    """Run a server in `folder` that listens on `port`, call it, and return what that took.

    Raises `WrongAnswer` where an answer is not the echo of its call.
    """
    with Child(command, folder, extra) as child:
        if calls.listens_early:
            _wait_until_served(port)
        first = connect(port)
        headers = headers_of(calls, first)
        start_s, start_cpu_s = time.perf_counter() - child.started, child.cpu_seconds()
        connections = [first, *(connect(port) for _ in range(calls.connections - 1))]
        exchange(connections, headers, calls, range(1, 1 + _WARM_UP))
        idle_mib = child.resident_mib()
        cpu_before, before = child.cpu_seconds(), time.perf_counter()
        exchange(connections, headers, calls, range(1 + _WARM_UP, 1 + _WARM_UP + calls.calls))
        elapsed, cpu_s = time.perf_counter() - before, child.cpu_seconds() - cpu_before
        # A new connection: idle ones make room where a crowd comes.
        with Crowd(port, calls.crowd) as crowd, connect(port) as alone:
            waits_us = _waits_us(alone, headers, calls)
            crowd.wait_until_closed()
        for connection in connections:
            connection.close()
        child.stop()
    return Run(
        calls_per_second=calls.calls / elapsed,
        cpu_us=cpu_s / calls.calls * 1e6,
        p50_us=_quantile(waits_us, 0.5),
        p99_us=_quantile(waits_us, 0.99),
        start_ms=start_s * 1e3,
        start_cpu_ms=start_cpu_s * 1e3,
        idle_mib=idle_mib,
    )


def _wait_until_served(port: int) -> None:
    """Ask until a request is answered with success."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        with connect(port) as connection:
            connection.sendall(request_of({"content-type": "application/json"}, greeting()))
            if connection.recv(1 << 16).startswith(b"HTTP/1.1 200"):
                return
        time.sleep(0.01)


def _waits_us(connection: socket.socket, headers: dict[str, str], calls: HttpCalls) -> list[float]:
    """Return how long each call took that was made alone."""
    taken: list[float] = []
    for number in range(calls.one_at_a_time):
        request = request_of(headers, call_of(calls, number), calls.route)
        before = time.perf_counter()
        _ask(connection, request)
        taken.append((time.perf_counter() - before) * 1e6)
    return taken


def _quantile(waits_us: list[float], share: float) -> float | None:
    return sorted(waits_us)[int(len(waits_us) * share)] if waits_us else None


def connect(port: int, patience_s: float = _PATIENCE_S) -> socket.socket:
    """Return a connection, once somebody listens."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            made = socket.create_connection(("127.0.0.1", port), timeout=patience_s)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made


def headers_of(calls: HttpCalls, connection: socket.socket) -> dict[str, str]:
    """Return the headers of every call; where there is a handshake, after it."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if calls.route != "/mcp":
        return headers
    if not calls.has_handshake:
        own = {"mcp-protocol-version": calls.revision, "mcp-method": "tools/call", "mcp-name": "echo"}
        return headers | own
    answered = _ask(connection, request_of(headers, greeting(calls.revision)))
    headers |= {"mcp-protocol-version": calls.revision}
    if (session := answered.get("mcp-session-id")) is not None:
        headers |= {"mcp-session-id": session}
    _ask(connection, request_of(headers, initialized()))
    return headers


def call_of(calls: HttpCalls, number: int) -> bytes:
    """Return the body of one call."""
    given = {"text": f"message {number}"}
    if calls.route == "/execute":
        return json.dumps({"session_id": "bench", "tool_id": "echo", "args": given}).encode()
    if calls.route == "/rpc":
        return message("mcp.tool.invoke", number, {"tool": "mcp.tool:echo", "input": given})
    params: dict[str, Any] = {"name": "echo", "arguments": given}
    if not calls.has_handshake:
        params["_meta"] = {
            f"{_META}protocolVersion": calls.revision,
            f"{_META}clientCapabilities": {},
            f"{_META}clientInfo": {"name": "bench", "version": "1"},
        }
    return message("tools/call", number, params)


def request_of(headers: dict[str, str], body: bytes, route: Route = "/mcp") -> bytes:
    """Return one request."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = [f"POST {route} HTTP/1.1", "host: 127.0.0.1:80", f"content-length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body


@dataclass(slots=True)
class _Answer:
    """An answer as far as it has arrived."""

    data: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body_at: int = 0

    def take(self, part: bytes) -> bytes | None:
        """Add what has arrived; return the body once it is whole.

        Raises `WrongAnswer` for another status than 200 and 202.
        """
        self.data += part
        if not self.headers:
            head, end, _ = self.data.partition(b"\r\n\r\n")
            if not end:
                return None
            status, *lines = head.decode("latin-1").split("\r\n")
            if status.split(" ")[1] not in ("200", "202"):
                raise WrongAnswer(f"a request was answered with {status}")
            named = (line.partition(":") for line in lines)
            self.headers = {name.lower(): value.strip() for name, _, value in named}
            self.body_at = len(head) + 4
        size = int(self.headers.get("content-length", "0"))
        body = self.data[self.body_at :]
        return body if len(body) >= size else None


def _ask(connection: socket.socket, request: bytes) -> dict[str, str]:
    """Send one request; return the headers of its answer."""
    connection.sendall(request)
    return receive(connection)


def receive(connection: socket.socket) -> dict[str, str]:
    """Wait for one whole answer; return its headers.

    Raises `WrongAnswer` where the connection is closed before its end.
    """
    answer = _Answer()
    while part := connection.recv(1 << 16):
        if answer.take(part) is not None:
            return answer.headers
    raise WrongAnswer("a connection was closed before its answer")


def exchange(
    connections: Sequence[socket.socket], headers: dict[str, str], calls: HttpCalls, numbers: Sequence[int]
) -> None:
    """Send all calls, one at a time on each connection, and check the answers."""
    waiting = iter([request_of(headers, call_of(calls, number), calls.route) for number in numbers])
    bodies: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        for connection, request in zip(connections, waiting, strict=False):
            connection.sendall(request)
            selector.register(connection, selectors.EVENT_READ, _Answer())
        while selector.get_map():
            for key, _ in selector.select(_PATIENCE_S):
                connection, answer = key.fileobj, key.data
                assert isinstance(connection, socket.socket)
                part = connection.recv(1 << 16)
                if not part:
                    raise WrongAnswer("a connection was closed before its answer")
                body = answer.take(part)
                if body is None:
                    continue
                bodies.append(body)
                request = next(waiting, None)
                if request is None:
                    selector.unregister(connection)
                else:
                    connection.sendall(request)
                    selector.modify(connection, selectors.EVENT_READ, _Answer())
    if calls.route == "/execute":
        check_texts(bodies, numbers)
    else:
        check(b"\n".join(json.dumps(json.loads(body)).encode() for body in bodies), numbers)
