"""Tools that a server of 2025-11-25 runs as tasks alone: to clients they are tools like others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import META
from support.mcp_http_peer import EVERY_DOOR, PeerOf
from support.mcp_peer import CAPABILITIES, Peer, table
from support.portbook_process import TESTS
from support.running_processes import wait_until

ERAS = ("2025-11-25", "2026-07-28")
OFFERING = f"command = {json.dumps([sys.executable, str(TESTS / 'fixtures' / 'offering_server.py')])}"
BOX = table("box", OFFERING)
WITH_TASKS = {
    META + "clientCapabilities": {**CAPABILITIES, "extensions": {"io.modelcontextprotocol/tasks": {}}}
}


@pytest.fixture(params=EVERY_DOOR)
def peer_over(request: pytest.FixtureRequest) -> PeerOf:
    return EVERY_DOOR[request.param]


def heard(peer: Peer, method: str) -> list[Any]:
    return [params for name, params in json.loads(peer.text("box__heard")) if name == method]


@pytest.mark.covers("design.servers.tasks")
@pytest.mark.parametrize("revision", ERAS)
def test_a_tool_that_runs_as_a_task_alone_is_called_and_may_ask(
    tmp_path: Path, peer_over: PeerOf, revision: str
) -> None:
    with peer_over(tmp_path, BOX, revision) as peer:
        tools = {tool["name"]: tool for tool in peer.answer("tools/list")["result"]["tools"]}
        # To clients it is a tool that may run as a task, where their revision asks for one.
        assert tools["box__slow"].get("execution") == (
            {"taskSupport": "optional"} if revision == "2025-11-25" else None
        )
        answered = peer.text("box__slow", _meta={"progressToken": "t"})
        assert json.loads(answered)["content"] == {"name": "Ada"}
        told = [each["params"] for each in peer.heard if each["method"] == "notifications/progress"]
        assert [(each["progressToken"], each["progress"]) for each in told] == [("t", 1)]
        [called] = [each for each in heard(peer, "tools/call") if each["name"] == "slow"]
        assert called["task"]["ttl"] > 0
        assert heard(peer, "tasks/result") == [{"taskId": "slow"}]


def test_a_tool_that_may_run_as_a_task_is_called_as_a_tool(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, BOX) as peer:
        assert peer.text("box__maybe") == "plain"


def test_a_tool_that_may_run_as_a_task_does_for_a_client_with_tasks(
    tmp_path: Path, peer_over: PeerOf
) -> None:
    with peer_over(tmp_path, BOX, "2026-07-28") as peer:
        assert peer.text("box__maybe") == "plain"
        created = peer.answer("tools/call", {"name": "box__maybe", "arguments": {}, "_meta": WITH_TASKS})
        named = {"taskId": created["result"]["taskId"], "_meta": WITH_TASKS}
        wait_until(lambda: peer.answer("tasks/get", named)["result"]["status"] == "completed")
        assert peer.answer("tasks/get", named)["result"]["result"]["content"][0]["text"] == "as a task"


def test_the_result_of_a_task_is_checked_as_that_of_a_tool(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, BOX) as peer:
        assert "BAD_RESULT" in json.dumps(peer.call("box__broken"))
        assert peer.text("box__maybe") == "plain"


def test_a_cancelled_call_cancels_the_task(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, BOX) as peer:
        number = peer.start("tools/call", {"name": "box__endless", "arguments": {}})
        wait_until(lambda: heard(peer, "tasks/result") == [{"taskId": "endless"}])
        peer.write({"method": "notifications/cancelled", "params": {"requestId": number}})
        wait_until(lambda: heard(peer, "tasks/cancel") == [{"taskId": "endless"}])


def test_a_task_that_takes_too_long_is_cancelled(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, table("box", OFFERING, "timeout_ms = 2000")) as peer:
        assert "TIMEOUT" in json.dumps(peer.call("box__endless"))
        assert heard(peer, "tasks/cancel") == [{"taskId": "endless"}]


def test_to_a_client_with_tasks_it_is_a_task_of_ours(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, BOX, "2026-07-28") as peer:
        params = {"name": "box__endless", "arguments": {}, "_meta": WITH_TASKS}
        created = peer.answer("tools/call", params)["result"]
        assert (created["resultType"], created["status"]) == ("task", "working")
        named = {"taskId": created["taskId"], "_meta": WITH_TASKS}
        assert created["taskId"] != "endless"
        assert peer.answer("tasks/get", named)["result"]["status"] == "working"
        peer.answer("tasks/cancel", named)
        assert peer.answer("tasks/get", named)["result"]["status"] == "cancelled"
        wait_until(lambda: heard(peer, "tasks/cancel") == [{"taskId": "endless"}])
