"""When a client has its answer, the record of its call is in the file: whichever way the answer took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import handshake
from support.portbook_process import HttpServer, http_server, run

HEADERS = {"content_type": "application/json", "accept": "application/json, text/event-stream"}

TOOLS = """
from typing import Any

from pydantic import BaseModel

from portbook import Toolset

toolset = Toolset("careless")


class Given(BaseModel):
    part: Any


@toolset.tool(effect="read")
def anything(given: Any) -> str:
    given["part"]["added"] = True
    return "done"


@toolset.tool(effect="read")
def listed(given: list[Any]) -> str:
    given[0]["part"]["added"] = True
    return "done"


@toolset.tool(effect="read")
def named(given: dict[str, Any]) -> str:
    given["part"]["added"] = True
    return "done"


@toolset.tool(effect="read")
def modelled(given: Given) -> str:
    given.part["added"] = True
    return "done"


@toolset.tool(effect="read", input_schema={"type": "object"})
def described(given: Any) -> str:
    given["part"]["added"] = True
    return "done"
"""


class Session:
    """A session at /mcp."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._headers = dict(HEADERS)
        hello = self.ask("initialize", handshake("2025-11-25"))
        self._headers["mcp_session_id"] = hello.headers["mcp-session-id"]

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self._server.request("/mcp", json.dumps(message).encode(), **self._headers)
        assert answer.status == 200
        return answer


def records_in(folder: Path, stream: str) -> list[dict[str, Any]]:
    """The records of all processes that serve in a folder."""
    files = (folder / "runs" / "mcp_server" / stream).glob("2*.jsonl")
    return [json.loads(line) for file in sorted(files) for line in file.read_text().splitlines()]


def methods_in(folder: Path) -> list[str]:
    return [each["method"] for each in records_in(folder, "envelope_validation")]


@pytest.mark.covers("design.records.before-answers-of-sessions")
def test_a_change_of_a_session_is_recorded_before_it_is_answered(tmp_path: Path) -> None:
    with http_server(cwd=tmp_path) as server:
        session = Session(server)
        session.ask("logging/setLevel", {"level": "debug"})
        assert methods_in(tmp_path)[-1] == "logging/setLevel"


@pytest.mark.covers("design.records.before-answers-of-workers")
def test_a_call_at_a_worker_that_has_to_find_its_session_is_recorded_before_it_is_answered(
    tmp_path: Path,
) -> None:
    with http_server("--workers", "2", cwd=tmp_path) as server:
        session = Session(server)
        for number in range(1, 9):  # each on a connection of its own, which either worker may take
            session.ask("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
            assert methods_in(tmp_path).count("tools/call") == number


@pytest.mark.covers("design.records.arguments-as-sent")
@pytest.mark.parametrize("tool", ["anything", "listed", "named", "modelled", "described"])
def test_a_tool_that_changes_what_it_was_given_does_not_change_its_record(tool: str, tmp_path: Path) -> None:
    (tmp_path / "careless.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text("[audit]\narguments = true\n")
    given: Any = {"part": {"a": 1}}
    arguments = {"given": [given] if tool == "listed" else given}
    message = {"jsonrpc": "2.0", "id": 1, "method": "mcp.tool.invoke"}
    params = {"tool": f"mcp.tool:{tool}", "input": arguments}
    line = json.dumps({**message, "params": params}).encode()
    done = run("serve", "--stdio", "careless.py", stdin=line + b"\n", cwd=tmp_path)
    assert done.answers[0]["result"] == "done", done.err
    [record] = records_in(tmp_path, "execution")
    assert record["arguments"] == arguments
