"""A server with a tool that needs approval and an MCP server behind it, and an operator who asks it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.pinned_folder import PinnedFolder
from support.portbook_process import HttpServer, environment, http_server, records, run

KEY = "an-operators-key-for-tests"
CANARY = "canary-4f1c9d2e7b6a"
TOOLS = """
from portbook import Toolset
tools = Toolset("notes")

@tools.tool(name="notes.keep", effect="write")
def keep(name: str, tags: list[str] = [], password: str = "") -> str:
    '''Keep a note.

    For good.'''
    return name
"""
SETTINGS = """
[python]
toolsets = ["tools.py"]
[audit]
arguments = true
[[keys.allow]]
name = "ada"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
tools = ["box.*"]
[policy]
max_payload_bytes = 2000
[[policy.rules]]
name = "ask before keeping"
action = "ask"
tools = ["notes.keep"]
"""


@dataclass
class Console:
    server: HttpServer
    folder: PinnedFolder

    def ask(self, path: str, body: Any = None, key: str | None = KEY) -> tuple[int, Any]:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        if body is not None:
            headers["content-type"] = "application/json"
        answer = self.server.request(path, None if body is None else json.dumps(body).encode(), **headers)
        return answer.status, answer.json

    def call(self, tool: str, **arguments: Any) -> Any:
        body = json.dumps({"session_id": "s", "args": arguments}).encode()
        return self.server.request(f"/tools/{tool}", body, content_type="application/json").json

    def withheld(self) -> list[dict[str, Any]]:
        status, found = self.ask("/operator/pins?server=box")
        assert status == 200
        return found["servers"][0]["definitions"]

    def decide(self, decision: str, *definitions: dict[str, Any], **more: Any) -> tuple[int, Any]:
        named = [{name: each[name] for name in ("kind", "name", "digest")} for each in definitions]
        return self.ask("/operator/pins/box", {"decision": decision, "definitions": named, **more})

    def last_record(self, method: str) -> dict[str, Any]:
        told = records(self.folder.path / "runs")
        request = [each["requestId"] for each in told if each["method"] == method][-1]
        return self.ask(f"/operator/calls/{request}")[1]["execution"][0]["record"]


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 90  # a machine that is busy with other tests takes its time
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def operator_console(path: Path) -> Generator[Console]:
    """Serve from `path`, with the definitions of the server pinned."""
    (path / "tools.py").write_text(TOOLS)
    folder = PinnedFolder(path, f'start = "eager"\nenv = {{ BOX_TOKEN = "{CANARY}" }}', SETTINGS)
    assert run("pin", cwd=path).code == 0
    with http_server(cwd=path, tools=(), env=environment(PORTBOOK_OPERATOR_KEY=KEY)) as server:
        served = Console(server, folder)
        until(lambda: served.ask("/operator/upstreams")[1]["upstreams"][0]["state"] == "ready")
        yield served
