"""Several Portbook processes with one store, and a client that says which of them gets each request."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.in_process_connection import META
from support.portbook_process import TESTS, HttpServer, http_server

TOOLS = TESTS / "fixtures" / "any_node_tools.py"
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {}}
PATIENCE_S = 120.0  # a database knows only after a while that a process is gone
BOTH = "application/json, text/event-stream"


@dataclass(frozen=True)
class Nodes:
    """Processes that share a store."""

    folder: Path
    servers: list[HttpServer]

    def pid(self, node: int) -> int:
        return self.servers[node].process.pid

    def connection(self, node: int) -> http.client.HTTPConnection:
        """A new connection to a node."""
        return _connection(self.servers[node].url)


class WorkerNodes(Nodes):
    """The workers of one server: a connection is asked who has taken it, and kept until it is needed."""

    def __init__(self, folder: Path, server: HttpServer, count: int) -> None:
        super().__init__(folder, [server] * count)
        self._kept: dict[int, list[http.client.HTTPConnection]] = {}
        until = time.monotonic() + PATIENCE_S
        while len(self._kept) < count:
            assert time.monotonic() < until, f"only {len(self._kept)} workers answer"
            self._connect()

    def pid(self, node: int) -> int:
        return sorted(self._kept)[node]

    def connection(self, node: int) -> http.client.HTTPConnection:
        kept = self._kept[self.pid(node)]
        while not kept:  # those of the others stay open: the next one then goes to who has fewer
            self._connect()
        return kept.pop()

    def close(self) -> None:
        for each in itertools.chain.from_iterable(self._kept.values()):
            each.close()

    def _connect(self) -> None:
        connection = _connection(self.servers[0].url)
        body = json.dumps({"tool_id": "pid", "args": {}, "session_id": "who"})
        connection.request("POST", "/execute", body, {"Content-Type": "application/json"})
        self._kept.setdefault(json.loads(connection.getresponse().read())["result"], []).append(connection)


def _connection(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)


@contextlib.contextmanager
def nodes_of(folder: Path, count: int, store: str) -> Iterator[Nodes]:
    """So many processes with the same settings; `store` is the table of the store."""
    (folder / "portbook.toml").write_text(f"[server]\nshared = true\n{store}")
    with contextlib.ExitStack() as stack:
        starting = (
            http_server("--log-dir", f"log{number}", cwd=folder, tools=(str(TOOLS),))
            for number in range(count)
        )
        yield Nodes(folder, [stack.enter_context(each) for each in starting])


@contextlib.contextmanager
def one_process(folder: Path, count: int) -> Iterator[Nodes]:
    """A server alone, which is every node."""
    with http_server("--log-dir", "log", cwd=folder, tools=(str(TOOLS),)) as server:
        yield Nodes(folder, [server] * count)


@contextlib.contextmanager
def workers_of(folder: Path, count: int) -> Iterator[Nodes]:
    """So many workers of one server, with a store in a file."""
    options = ("--workers", str(count), "--log-dir", "log")
    with http_server(*options, cwd=folder, tools=(str(TOOLS),)) as server:
        found = WorkerNodes(folder, server, count)
        yield found
        found.close()


class Reply:
    """A response, as it comes: its status, and the events or the message in it."""

    def __init__(
        self, connection: http.client.HTTPConnection, method: str, headers: dict[str, str], body: object
    ) -> None:
        self._connection = connection
        self.status = 0
        self.headers: dict[str, str] = {}
        self.events: list[tuple[str | None, Any]] = []
        self.is_over = False
        self._request = (method, headers, None if body is None else json.dumps(body))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        method, headers, body = self._request
        with contextlib.suppress(OSError, http.client.HTTPException, AttributeError, ValueError):
            self._connection.request(method, "/mcp", body, headers)
            response = self._connection.getresponse()
            self.headers = {name.lower(): value for name, value in response.getheaders()}
            self.status = response.status
            if self.headers.get("content-type", "").startswith("text/event-stream"):
                identifier = None
                for line in response:
                    if line.startswith(b"id: "):
                        identifier = line[4:].strip().decode()
                    elif line.startswith(b"data:"):
                        text = line[5:].strip()
                        self.events.append((identifier, json.loads(text) if text else None))
            elif content := response.read():
                self.events.append((None, json.loads(content)))
        self._connection.close()
        self.is_over = True

    @property
    def messages(self) -> list[Any]:
        return [message for _, message in self.events if message is not None]

    @property
    def last_id(self) -> str:
        return next(identifier for identifier, _ in reversed(self.events) if identifier is not None)

    def until(self, is_so: Callable[[], object]) -> Reply:
        until = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until, self.events
            time.sleep(0.01)
        return self

    def ended(self) -> Reply:
        return self.until(lambda: self.is_over)

    def told(self, method: str) -> list[Any]:
        return [each for each in self.messages if each.get("method") == method]

    def answer(self) -> Any:
        """Wait for the answer."""
        self.until(lambda: self.is_over or any("method" not in each for each in self.messages))
        return next(each for each in self.messages if "method" not in each)

    def leave(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)


class NodeClient:
    """One MCP client, which says to which node each of its requests goes."""

    def __init__(self, nodes: Nodes, revision: str = "2025-11-25", node: int = 0, second: int = 1) -> None:
        self._nodes = nodes
        self.revision = revision
        self.session = ""
        self._ids = itertools.count(1)
        if revision < "2026":
            params = {
                "protocolVersion": revision,
                "capabilities": CAPABILITIES,
                "clientInfo": {"name": "tests", "version": "1"},
            }
            reply = self.start(node, "initialize", params).ended()
            self.session = reply.headers["mcp-session-id"]
            assert self.send(second, {"method": "notifications/initialized"}).status == 202

    def send(self, node: int, message: dict[str, Any]) -> Reply:
        """Send a message that is not answered."""
        return self._reply(node, "POST", {"jsonrpc": "2.0", **message}).ended()

    def start(self, node: int, method: str, params: dict[str, Any] | None = None) -> Reply:
        """Send a request."""
        params = dict(params or {})
        if not self.revision < "2026":
            extensions = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            meta = {
                META + "protocolVersion": self.revision,
                META + "clientCapabilities": {**CAPABILITIES, **extensions},
            }
            params["_meta"] = {**meta, **params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        return self._reply(node, "POST", message)

    def ask(self, node: int, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request and return its answer."""
        return self.start(node, method, params).answer()

    def call(self, node: int, tool: str, **arguments: Any) -> Reply:
        """Call a tool, with a token for its progress."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": tool}}
        return self.start(node, "tools/call", params)

    def text(self, node: int, tool: str, **arguments: Any) -> str:
        return text_of(self.call(node, tool, **arguments).answer())

    def task(self, node: int, tool: str, **arguments: Any) -> str:
        """Call a tool as a task; return the id of the task."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self.revision < "2026":
            params["task"] = {"ttl": 60_000}
        result = self.ask(node, "tools/call", params)["result"]
        return result["task"]["taskId"] if self.revision < "2026" else result["taskId"]

    def listen(self, node: int, last_event: str | None = None) -> Reply:
        """Open the session's own stream, or resume a stream."""
        headers = {} if last_event is None else {"Last-Event-ID": last_event}
        return self._reply(node, "GET", None, **headers)

    def end(self, node: int) -> Reply:
        return self._reply(node, "DELETE", None).ended()

    def _reply(self, node: int, method: str, body: Any, **more: str) -> Reply:
        headers = {"Accept": BOTH, "Content-Type": "application/json", **more}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if not isinstance(body, dict) or body.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = self.revision
        if isinstance(body, dict) and not self.revision < "2026":
            headers["Mcp-Method"] = body["method"]
            named = next(
                (body["params"][name] for name in ("name", "uri", "taskId") if name in body["params"]), None
            )
            if named is not None:
                headers["Mcp-Name"] = named
        return Reply(self._nodes.connection(node), method, headers, body)


def text_of(answer: Any) -> str:
    return answer["result"]["content"][0]["text"]
