"""An MCP client of `/mcp` in this process: requests to the application itself, events as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.audit.memory_sink import MemorySink
from portbook.doors.http.mounted_asgi_app import asgi_application
from portbook.doors.http.route_table import routes_of
from portbook.settings import load_settings
from support.in_process_connection import META, STATELESS_META, handshake
from support.portbook_process import SAMPLE_TOOLS, TESTS

EVERYTHING = TESTS / "conformance" / "everything.py"
BOTH = "application/json, text/event-stream"


@dataclass
class Exchange:
    """One HTTP request under way, and what has come back of it."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_over: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _leaving: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str | None, Any]]:
        """The events so far: ids, and messages; None where an event has none."""
        found: list[tuple[str | None, Any]] = []
        for block in self.body.decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if fields:
                found.append((fields.get("id"), json.loads(fields["data"]) if fields.get("data") else None))
        return found

    @property
    def messages(self) -> list[Any]:
        if not self.is_stream:
            return [self.json] if self.body else []
        return [message for _, message in self.events if message is not None]

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def ended(self) -> Exchange:
        await self.until(lambda: self.is_over)
        return self

    async def leave(self) -> None:
        """Hang up, and wait until the server has noticed."""
        self._leaving.set()
        assert self.task is not None
        await self.task


class Client:
    """Speaks to one server. Headers of a revision are added where it has some."""

    def __init__(self, served: App, sink: MemorySink) -> None:
        self.served = served
        self.sink = sink
        self._app = asgi_application(routes_of(served, has_legacy_sse=True))
        self.session: str | None = None
        self.revision: str | None = None
        self.key: str | None = None
        self.accept = BOTH

    def start(
        self, body: object = None, method: str = "POST", path: str = "/mcp", **headers: str
    ) -> Exchange:
        """Send a request; what comes back is in the exchange, as it comes."""
        given = {"host": "localhost", "accept": self.accept}
        if method == "POST":
            given["content-type"] = "application/json"
        if self.session is not None:
            given["mcp-session-id"] = self.session
        if self.revision is not None:
            given["mcp-protocol-version"] = self.revision
        if self.key is not None:
            given["authorization"] = f"Bearer {self.key}"
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = [(name.encode(), value.encode()) for name, value in given.items() if value != "-"]
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": raw,
            "query_string": query.encode(),
        }
        exchange = Exchange()
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": data}
            await exchange._leaving.wait()
            return {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            if event["type"] == "http.response.start":
                exchange.status = event["status"]
                exchange.headers = {name.decode(): value.decode() for name, value in event["headers"]}
            else:
                exchange.body += event.get("body", b"")
                exchange.is_over = not event.get("more_body")
            exchange._changed.set()

        exchange.task = asyncio.get_running_loop().create_task(self._app(scope, receive, send))
        return exchange

    async def send(
        self, body: object = None, method: str = "POST", path: str = "/mcp", **headers: str
    ) -> Exchange:
        exchange = await self.start(body, method, path, **headers).ended()
        assert exchange.task is not None
        await exchange.task
        return exchange

    def ask(self, method: str, params: dict[str, Any] | None = None, id: object = 1) -> Exchange:
        """Send a request of this client's revision, with the headers that go with it."""
        params = dict(params or {})
        headers: dict[str, str] = {}
        if self.revision == "2026-07-28":
            params["_meta"] = {**STATELESS_META, **params.get("_meta", {})}
            headers["mcp-method"] = method
            for member in ("name", "uri", "taskId"):
                if isinstance(params.get(member), str) and method != "skills/get":
                    headers["mcp-name"] = params[member]
                    break
        return self.start({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, **headers)

    async def result(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Return the result of a request, whichever way it came."""
        exchange = await self.ask(method, params).ended()
        return exchange.messages[-1]["result"]

    async def error(self, method: str, params: dict[str, Any] | None = None) -> Any:
        exchange = await self.ask(method, params).ended()
        return exchange.messages[-1]["error"]

    async def open(self, revision: str, **capabilities: Any) -> Client:
        """Begin a session, or be ready to speak a revision without one."""
        self.revision = revision
        if revision != "2026-07-28":
            self.revision, self.session = None, None
            hello = {**handshake(revision), "capabilities": capabilities}
            greeted = await self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
            assert greeted.json["result"]["protocolVersion"] == revision
            self.session, self.revision = greeted.headers["mcp-session-id"], revision
            assert (await self.notify("notifications/initialized")).status == 202
        return self

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> Exchange:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        return await self.send(message if params is None else {**message, "params": params})

    async def reply(self, request: Any, result: object) -> Exchange:
        """Answer a request of the server."""
        return await self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def capable(**capabilities: Any) -> dict[str, Any]:
    """The `_meta` of a client that can do something."""
    return {"_meta": {META + "clientCapabilities": capabilities}}


@asynccontextmanager
async def serving(
    folder: Path,
    *toolsets: Path,
    sink: MemorySink | None = None,
    config: Path | None = None,
    is_shared: bool = False,
    **flags: Any,
) -> AsyncIterator[Client]:
    """A server of toolsets (the sample tools, if none is named), and a client for it."""
    sources = tuple(str(path) for path in toolsets or (SAMPLE_TOOLS,))
    given = {"docs.enabled": False, "python.toolsets": sources, "store.path": folder / "portbook.db", **flags}
    sink = sink or MemorySink()
    settings = load_settings(config, {}, given, folder)
    served = assemble(settings, is_exposed=False, sink=sink, is_shared=is_shared)
    if served.nodes is not None:
        served.nodes.node.start()
    try:
        yield Client(served, sink)
    finally:
        served.changes.close()
        await served.close()


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 60))
