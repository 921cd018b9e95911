"""`portbook serve --reload` with MCP servers behind it, and with tasks under way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import META
from support.mcp_peer import CAPABILITIES, Peer, table
from support.portbook_process import PORTBOOK, TESTS, child
from support.running_processes import wait_until

OFFERING = f"command = {json.dumps([sys.executable, str(TESTS / 'fixtures' / 'offering_server.py')])}"
SETTINGS = '[python]\ntoolsets = ["tools.py"]\n[docs]\nenabled = false\n' + table("box", OFFERING)
TOOLS = """\
import time
from pathlib import Path

from portbook import Toolset

toolset = Toolset("x")


@toolset.tool(effect="read")
def look() -> str:
    return "old"


@toolset.tool(effect="read", task="optional")
def wait() -> str:
    Path("waiting").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return "old"
"""
WITH_TASKS = {
    META + "clientCapabilities": {**CAPABILITIES, "extensions": {"io.modelcontextprotocol/tasks": {}}}
}
LATEST = "2026-07-28"


class Reloaded(Peer):
    """A client of a server that reloads."""

    def change(self, old: str = '"old"', new: str = '"new"') -> None:
        """Change the toolset, and wait until it is in force."""
        path = self.folder / "tools.py"
        path.write_text(path.read_text().replace(old, new))
        wait_until(lambda: "reloaded: the changed files are in force" in self.said())

    def said(self) -> str:
        return (self.folder / "stderr").read_text()

    def heard_by_box(self, method: str) -> list[Any]:
        return [params for name, params in json.loads(self.text("box__heard")) if name == method]

    def task(self, tool: str) -> dict[str, Any]:
        """Begin a task; return what later requests name it with."""
        begun = self.answer("tools/call", {"name": tool, "arguments": {}, "_meta": WITH_TASKS})["result"]
        assert begun["resultType"] == "task"
        return {"taskId": begun["taskId"], "_meta": WITH_TASKS}

    def state(self, named: dict[str, Any]) -> Any:
        return self.answer("tasks/get", named)["result"]


@pytest.fixture(params=["2025-11-25", LATEST])
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reloaded]:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    command = [*PORTBOOK, "serve", "--stdio", "--reload"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        (tmp_path / "stderr").open("wb") as errors,
        child(command, cwd=tmp_path, stderr=errors, **pipes) as process,
    ):
        peer = Reloaded(process, request.param)
        peer.folder = tmp_path
        yield peer
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


only_latest = pytest.mark.parametrize("peer", [LATEST], indirect=True)


@pytest.mark.covers("design.reload.servers")
def test_tools_of_servers_are_there_before_and_after(peer: Reloaded) -> None:
    assert peer.text("box__maybe") == "plain"
    before = peer.names()
    peer.change()
    assert peer.text("look") == "new"
    assert peer.names() == before
    assert peer.text("box__maybe") == "plain"


@pytest.mark.parametrize("peer", ["2025-11-25"], indirect=True)  # later ones answer in rounds
def test_a_call_to_a_server_that_is_under_way_ends_with_the_process_that_it_began_in(peer: Reloaded) -> None:
    number = peer.start("tools/call", {"name": "box__slow", "arguments": {}})
    asked = json.loads(peer.lines.get(timeout=30))
    assert asked["method"] == "elicitation/create"
    peer.change()
    assert peer.text("box__maybe") == "plain"  # of a second process
    peer.write({"id": asked["id"], "result": peer.given(asked)})
    ended = peer.finish(number)["result"]
    assert json.loads(ended["content"][0]["text"])["content"] == {"name": "Ada"}


@only_latest
@pytest.mark.covers("design.reload.tasks")
def test_a_task_of_a_toolset_goes_on_and_its_result_is_found_after_the_reload(peer: Reloaded) -> None:
    named = peer.task("wait")
    wait_until((peer.folder / "waiting").exists)
    peer.change()
    assert peer.text("look") == "new"
    assert peer.state(named)["status"] == "working"
    (peer.folder / "go").touch()
    wait_until(lambda: peer.state(named)["status"] == "completed")
    assert peer.state(named)["result"]["content"][0]["text"] == "old"


@only_latest
def test_a_task_at_a_server_can_be_cancelled_after_the_reload(peer: Reloaded) -> None:
    named = peer.task("box__endless")
    wait_until(lambda: peer.heard_by_box("tasks/result") == [{"taskId": "endless"}])
    peer.change()
    assert peer.state(named)["status"] == "working"
    peer.answer("tasks/cancel", named)
    assert peer.state(named)["status"] == "cancelled"
    wait_until(lambda: "task cancelled" in peer.said())


def test_a_server_that_is_added_and_one_that_is_taken_away_are_taken_up(peer: Reloaded) -> None:
    assert "box__maybe" in peer.names()
    (peer.folder / "portbook.toml").write_text(SETTINGS.replace("[mcp.box]", "[mcp.crate]"))
    wait_until(lambda: "reloaded: the changed files are in force" in peer.said())
    wait_until(lambda: "crate__maybe" in peer.names())
    assert "box__maybe" not in peer.names()
    assert peer.text("crate__maybe") == "plain"
