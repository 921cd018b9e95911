"""Tasks that clients of 2025-11-25 ask for: of our own tools, and of tools of servers behind us."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_peer import EVERY_DOOR, PeerOf
from support.mcp_peer import Peer, table
from support.portbook_process import TESTS
from support.running_processes import wait_until

OWN = """
import asyncio

from portbook import Context, Toolset

toolset = Toolset("own")


@toolset.tool(effect="read", task="optional")
async def quick() -> str:
    return "done"


@toolset.tool(effect="read", task="optional")
async def greet(context: Context) -> str:
    asked = await context.elicit("Name?", {"properties": {"name": {"type": "string"}}})
    return asked.content["name"]


@toolset.tool(effect="read", task="optional")
async def endless() -> str:
    await asyncio.sleep(600)
    return "never"


@toolset.tool(effect="read", task="optional")
async def broken() -> str:
    raise ValueError


@toolset.tool(effect="read")
async def plain() -> str:
    return "plain"
"""
OFFERING = f"command = {json.dumps([sys.executable, str(TESTS / 'fixtures' / 'offering_server.py')])}"
SETTINGS = '[python]\ntoolsets = ["own.py"]\n' + table("box", OFFERING)
RELATED = "io.modelcontextprotocol/related-task"


@pytest.fixture(params=EVERY_DOOR)
def peer_over(request: pytest.FixtureRequest, tmp_path: Path) -> PeerOf:
    (tmp_path / "own.py").write_text(OWN)
    return EVERY_DOOR[request.param]


def created(peer: Peer, tool: str) -> dict[str, Any]:
    params = {"name": tool, "arguments": {}, "task": {"ttl": 60_000}}
    return peer.answer("tools/call", params)["result"]["task"]


def state(peer: Peer, task: dict[str, Any]) -> str:
    return peer.answer("tasks/get", {"taskId": task["taskId"]})["result"]["status"]


def result(peer: Peer, task: dict[str, Any]) -> Any:
    return peer.answer("tasks/result", {"taskId": task["taskId"]})


@pytest.mark.covers("design.mcp.task_requests")
def test_a_tool_runs_as_a_task_that_its_client_asked_for(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, SETTINGS) as peer:
        tools = {tool["name"]: tool for tool in peer.answer("tools/list")["result"]["tools"]}
        assert tools["quick"]["execution"] == {"taskSupport": "optional"}
        assert "execution" not in tools["plain"]
        assert peer.hello["capabilities"]["tasks"]["requests"] == {"tools": {"call": {}}}
        task = created(peer, "quick")
        assert (task["status"], task["ttl"] > 0, task["pollInterval"] > 0) == ("working", True, True)
        told = result(peer, task)["result"]
        assert told["content"][0]["text"] == "done"
        assert told["_meta"][RELATED] == {"taskId": task["taskId"]}
        assert state(peer, task) == "completed"
        [listed] = peer.answer("tasks/list")["result"]["tasks"]
        assert listed["taskId"] == task["taskId"]
        assert peer.answer("tasks/cancel", {"taskId": task["taskId"]})["error"]["code"] == -32602


@pytest.mark.parametrize("tool", ["greet", "box__slow"])
def test_what_a_task_asks_comes_with_the_request_for_its_result(
    tmp_path: Path, peer_over: PeerOf, tool: str
) -> None:
    with peer_over(tmp_path, SETTINGS) as peer:
        task = created(peer, tool)
        if tool == "greet":
            wait_until(lambda: state(peer, task) == "input_required")
        assert "Ada" in json.dumps(result(peer, task)["result"])
        [asked] = [each for each in peer.heard if each["method"] == "elicitation/create"]
        assert asked["params"]["_meta"][RELATED]["taskId"] == task["taskId"]


@pytest.mark.parametrize("tool", ["endless", "box__endless"])
def test_a_task_is_cancelled_and_then_has_no_result(tmp_path: Path, peer_over: PeerOf, tool: str) -> None:
    with peer_over(tmp_path, SETTINGS) as peer:
        task = created(peer, tool)
        number = peer.start("tasks/result", {"taskId": task["taskId"]})
        cancelled = peer.answer("tasks/cancel", {"taskId": task["taskId"]})["result"]
        assert cancelled["status"] == "cancelled"
        assert peer.finish(number)["error"]["code"] == -32602
        assert state(peer, task) == "cancelled"


def test_a_failure_of_a_task_is_told_as_that_of_its_call(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, SETTINGS) as peer:
        task = created(peer, "broken")
        assert result(peer, task)["result"]["isError"] is True
        assert state(peer, task) == "failed"


def test_a_task_is_only_for_tools_that_run_as_one_and_only_for_its_maker(
    tmp_path: Path, peer_over: PeerOf
) -> None:
    with peer_over(tmp_path, SETTINGS) as peer:
        params = {"name": "plain", "arguments": {}, "task": {}}
        assert peer.answer("tools/call", params)["error"]["code"] == -32601
        assert peer.text("quick") == "done"
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert peer.answer(method, {"taskId": "made-up"})["error"]["code"] == -32602
