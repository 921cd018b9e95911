"""Calls that may go on as tasks: answered when they end, or when they are let go of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.mcp_http_client import EVERYTHING, run, serving
from support.mcp_tasks import KNOWS, begun, seen


@pytest.mark.covers("design.tasks.lifecycle")
def test_a_slow_call_becomes_a_task_and_its_result_is_fetched_later(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "slow_compute", seconds=0.1, label="x")
            assert made["resultType"] == "task"
            assert made["status"] == "working"
            assert made.keys() == {
                *("resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs")
            }
            state = await seen(client, made["taskId"], "completed")
            assert state["result"]["content"][0]["text"] == "x: computed for 0.1 seconds"
            assert "requestState" not in state
            [record] = [r for r in client.sink.records if r["metadata"]["toolId"] == "mcp.tool:slow_compute"]
            assert record["status"] == "ok"

    run(main())


def test_what_ends_without_waiting_is_answered_at_once(tmp_path: Path) -> None:
    tools = tmp_path / "quick.py"
    tools.write_text(
        "from portbook import Toolset\n"
        "toolset = Toolset('quick')\n"
        "@toolset.tool(effect='read', task='optional', inline=True)\n"
        "def quick() -> int:\n    return 1\n"
    )

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            await client.open("2026-07-28")
            assert (await begun(client, "quick"))["resultType"] == "complete"

    run(main())


def test_a_tool_that_fails_in_a_task_completes_it_with_an_error_for_the_model(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "failing_job")
            state = await seen(client, made["taskId"], "completed", "failed")
            assert (state["status"], state["result"]["isError"]) == ("completed", True)
            made = await begun(client, "protocol_error_job")
            state = await seen(client, made["taskId"], "completed", "failed")
            assert (state["status"], state["error"]["code"]) == ("failed", -32603)
            assert "result" not in state

    run(main())


def test_a_tool_can_ask_first_and_go_on_as_a_task(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            asked = await begun(client, "test_tool_with_task")
            assert asked["resultType"] == "input_required"
            params = {
                "name": "test_tool_with_task",
                "arguments": {},
                "inputResponses": {"user_name": {"action": "accept", "content": {"name": "Alice"}}},
                "requestState": asked["requestState"],
                **KNOWS,
            }
            made = await client.result("tools/call", params)
            assert made["resultType"] == "task"
            assert "requestState" not in made
            state = await seen(client, made["taskId"], "completed")
            assert state["result"]["content"][0]["text"] == "Computed for Alice"

    run(main())


def test_a_thread_that_is_left_behind_makes_no_task_of_a_call_that_is_over(tmp_path: Path) -> None:
    tools = tmp_path / "late.py"
    tools.write_text(
        "import threading\n"
        "from portbook import Context, Toolset\n"
        "toolset = Toolset('late')\n"
        "go, gone = threading.Event(), threading.Event()\n"
        "@toolset.tool(effect='read', task='optional', detach=False, timeout_ms=50)\n"
        "def late(context: Context) -> int:\n"
        "    go.wait(30)\n"
        "    context.detach()\n"
        "    gone.set()\n"
        "    return 1\n"
        "@toolset.tool(effect='read')\n"
        "def release() -> None:\n"
        "    go.set()\n"
        "    gone.wait(30)\n"
    )

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            await client.open("2026-07-28")
            assert (await begun(client, "late"))["_meta"]["portbook/refusal"]["reason"] == "TIMEOUT"
            await client.result("tools/call", {"name": "release"})
            await asyncio.sleep(0)
            assert client.served.boundary._parts.tasks._tasks == {}

    run(main())


def test_a_result_that_is_too_deep_to_keep_fails_its_task(tmp_path: Path) -> None:
    tools = tmp_path / "deep.py"
    tools.write_text(
        "from typing import Any\n"
        "import asyncio\n"
        "from portbook import Toolset\n"
        "toolset = Toolset('deep')\n"
        "@toolset.tool(effect='read', task='required')\n"
        "async def deep() -> Any:\n"
        "    await asyncio.sleep(0.01)\n"
        "    value = []\n"
        "    for _ in range(200):\n"
        "        value = [value]\n"
        "    return value\n"
    )

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            await client.open("2026-07-28")
            made = await begun(client, "deep")
            state = await seen(client, made["taskId"], "completed", "failed")
            assert (state["status"], state["error"]["data"]["reason"]) == ("failed", "BAD_RESULT")

    run(main())


ASK = """
[[policy.rules]]
name = "an operator decides"
action = "ask"
tools = ["slow_compute"]
"""


@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_a_call_that_waits_for_an_operator_is_a_task_where_the_client_knows_those(
    tmp_path: Path, decision: str
) -> None:
    config = tmp_path / "portbook.toml"
    config.write_text(ASK)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, config=config) as client:
            await client.open("2026-07-28")
            made = await begun(client, "slow_compute", seconds=0.01, label="x")
            assert made["resultType"] == "task"
            assert "An operator has to approve this call" in made["statusMessage"]
            [ticket] = client.served.approvals.tickets()
            await client.served.approvals.decide(ticket.id, decision, by="eve")
            state = await seen(client, made["taskId"], "completed", "failed")
            assert "statusMessage" not in state
            if decision == "approve":
                assert state["result"]["content"][0]["text"] == "x: computed for 0.01 seconds"
            else:
                refusal = state["result"]["_meta"]["portbook/refusal"]
                assert refusal["reason"] == "APPROVAL_DENIED"
                assert "Do not repeat it" in state["result"]["content"][0]["text"]

    run(main())


def test_whoever_knows_no_tasks_repeats_the_call_once_it_is_approved(tmp_path: Path) -> None:
    config = tmp_path / "portbook.toml"
    config.write_text(ASK)
    call = {"name": "slow_compute", "arguments": {"seconds": 0.01, "label": "x"}}

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, config=config) as client:
            await client.open("2025-11-25")
            refused = await client.result("tools/call", call)
            assert "Repeat the same call" in refused["content"][0]["text"]
            ticket = refused["_meta"]["portbook/refusal"]["approval_id"]
            await client.served.approvals.decide(ticket, "approve", by="eve")
            assert "isError" not in await client.result("tools/call", call)
            assert (await client.result("tools/call", call))["isError"] is True

    run(main())
