"""A server with what the console shows: tools of every kind, a rule that asks, one that denies."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.portbook_process import TESTS, HttpServer, Response, environment, http_server

OPERATOR = "the operator's key, of some length"
ADA = "key of ada"
TOOLS = TESTS / "fixtures" / "console_tools.py"

SETTINGS = f"""
[python]
toolsets = ["{TOOLS}"]
[[policy.rules]]
name = "refunds need a person"
tools = ["refund"]
action = "ask"
[[policy.rules]]
name = "no large searches"
tools = ["search"]
where = {{ "/limit" = {{ minimum = 1000 }} }}
action = "deny"
"""


@dataclass
class ConsoleServer:
    server: HttpServer
    folder: Path
    cents: int = 0

    @property
    def url(self) -> str:
        return self.server.url

    def call(self, tool: str, args: dict[str, Any], key: str | None = None, **more: Any) -> Response:
        body = json.dumps({"session_id": "s-1", "args": args, **more}).encode()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return self.server.request(f"/tools/{tool}", body, content_type="application/json", **headers)

    def ask(self, **more: Any) -> str:
        """Make a call that needs a person, and return the id of its approval."""
        self.cents += 1
        answer = self.call("refund", {"cents": self.cents, **more})
        assert answer.status == 403, answer.body
        return answer.json["error"]["details"]["approval_id"]

    def operator(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        content = {} if body is None else {"content_type": "application/json"}
        return self.server.request(path, data, authorization=f"Bearer {OPERATOR}", **content).json

    def state(self, approval: str) -> Any:
        return self.operator(f"/approvals/{approval}")


@contextlib.contextmanager
def served(folder: Path, settings: str, variables: dict[str, str]) -> Generator[ConsoleServer]:
    (folder / "portbook.toml").write_text(settings)
    with http_server(cwd=folder, tools=(), env=environment(**variables)) as server:
        yield ConsoleServer(server, folder)
