"""A client that talks to a Portbook over STDIO, in either era, and answers what it is asked."""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support.in_process_connection import HANDSHAKES, META, STATELESS_META
from support.portbook_process import PORTBOOK, TESTS, child, run
from support.running_processes import PATIENCE_S

SMALL_SERVER = TESTS / "fixtures" / "mcp_server.py"
ANSWERS: dict[str, Any] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris"},
        "model": "m",
    },
    "roots/list": {"roots": [{"uri": "file:///work"}]},
}
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {}}


def small_server(mode: str = "") -> str:
    """The command of the small server, as TOML."""
    return f"command = {json.dumps([sys.executable, str(SMALL_SERVER), *([mode] if mode else [])])}"


def table(alias: str, *lines: str) -> str:
    """One table of `[mcp]`, trusted on first use."""
    return "\n".join((f"[mcp.{alias}]", 'trust = "first-use"', *lines, ""))


class Peer:
    """One client."""

    def __init__(self, process: subprocess.Popen[bytes], revision: str) -> None:
        self.process = process
        self.revision = revision
        self.folder = Path()
        self.heard: list[Any] = []
        self._ids = itertools.count(1)
        self._answers: dict[Any, Any] = {}
        self.lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.open()
        if revision in HANDSHAKES:
            hello = {"protocolVersion": revision, "clientInfo": {"name": "tests", "version": "1"}}
            self.hello = self.answer("initialize", {**hello, "capabilities": CAPABILITIES})["result"]
            self.write({"method": "notifications/initialized"})

    def open(self) -> None:
        out = self.process.stdout
        assert out is not None
        self.reading = threading.Thread(target=lambda: [self.lines.put(line) for line in out], daemon=True)
        self.reading.start()

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def start(self, method: str, params: dict[str, Any] | None = None) -> int:
        number, params = next(self._ids), dict(params or {})
        if self.revision not in HANDSHAKES:
            own = {META + "clientCapabilities": CAPABILITIES, **params.get("_meta", {})}
            params["_meta"] = {**STATELESS_META, **own}
        self.write({"id": number, "method": method, "params": params})
        return number

    def answer(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request and return its answer; what is asked meanwhile is answered."""
        return self.finish(self.start(method, params))

    def finish(self, number: int, seconds: float = 30) -> Any:
        """Return the answer to a request; answers to others are kept for those who ask for them."""
        while number not in self._answers:
            message = json.loads(self.lines.get(timeout=seconds))
            if "id" in message and "method" not in message:
                self._answers[message["id"]] = message
                continue
            if "id" in message:
                self.write({"id": message["id"], "result": self.given(message)})
            self.heard.append(message)
        return self._answers.pop(number)

    def given(self, request: dict[str, Any]) -> Any:
        """What this client answers a request with; a form with its defaults, if it has any."""
        answer = ANSWERS[request["method"]]
        form = request.get("params", {}).get("requestedSchema", {}).get("properties", {})
        defaults = {name: each["default"] for name, each in form.items() if "default" in each}
        return {**answer, "content": defaults} if defaults else answer

    def hear(self, method: str) -> None:
        """Wait for a notification."""
        while True:
            message = json.loads(self.lines.get(timeout=30))
            self.heard.append(message)
            if message.get("method") == method:
                return

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> Any:
        """Call a tool to its end, in as many rounds as that takes; return the result or the error."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments or {}, **more}
        answer = self.answer("tools/call", params)
        while answer.get("result", {}).get("resultType") == "input_required":
            asked = answer["result"]["inputRequests"]
            self.heard.extend(asked.values())
            given = {key: self.given(each) for key, each in asked.items()}
            rounds = {"inputResponses": given, "requestState": answer["result"]["requestState"]}
            answer = self.answer("tools/call", {**params, **rounds})
        return answer.get("result", answer.get("error"))

    def text(self, tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> str:
        return self.call(tool, arguments, **more)["content"][0]["text"]

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.answer("tools/list")["result"]["tools"]]

    def methods(self) -> list[str]:
        return [message["method"] for message in self.heard]


@contextlib.contextmanager
def peer_of(
    folder: Path,
    settings: str,
    revision: str = "2025-11-25",
    env: dict[str, str] | None = None,
    portbook: Sequence[str] = PORTBOOK,
) -> Iterator[Peer]:
    """A client of a Portbook with these settings."""
    (folder / "portbook.toml").write_text(settings)
    options = {} if env is None else {"env": env}
    with (
        (folder / "stderr").open("wb") as errors,
        child(
            [*portbook, "serve", "--stdio", "--log-dir", str(folder / "log")],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            **options,
        ) as process,
    ):
        peer = Peer(process, revision)
        yield peer
        assert process.stdin is not None
        if process.poll() is None:
            process.stdin.close()
            process.wait(30)
        peer.reading.join(30)


def ready_server(folder: Path) -> dict[str, Any]:
    """What `portbook upstreams` tells of the one server of a Portbook, once it is ready."""
    until = time.monotonic() + PATIENCE_S
    status: dict[str, Any] = {}
    while status.get("state") != "ready":
        assert time.monotonic() < until, status
        [status] = json.loads(run("upstreams", "--json", cwd=folder).out)["upstreams"]
    return status
