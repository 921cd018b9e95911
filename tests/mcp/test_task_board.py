"""Calls that go on as tasks: made, watched, answered, cancelled, and nobody else's business."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from portbook.mcp.task_board import Task
from support.mcp_http_client import EVERYTHING, Client, capable, run, serving

TASKS = "io.modelcontextprotocol/tasks"
KNOWS = capable(elicitation={}, extensions={TASKS: {}})


async def begun(client: Client, tool: str, **arguments: Any) -> Any:
    return await client.result("tools/call", {"name": tool, "arguments": arguments, **KNOWS})


async def seen(client: Client, task_id: str, *statuses: str) -> Any:
    """The task, once it has one of these statuses."""
    while True:
        state = await client.result("tasks/get", {"taskId": task_id, **KNOWS})
        if state["status"] in statuses:
            return state
        await asyncio.sleep(0.01)


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


def test_a_task_waits_for_its_answers_and_takes_them_one_by_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "multi_input")
            state = await seen(client, made["taskId"], "input_required")
            assert sorted(state["inputRequests"]) == ["first", "second"]
            for key, left in (("first", ["second"]), ("nobody", ["second"])):
                given = {key: {"action": "accept", "content": {"name": key}}}
                params = {"taskId": made["taskId"], "inputResponses": given, **KNOWS}
                assert await client.result("tasks/update", params) == {"resultType": "complete"}
                state = await seen(client, made["taskId"], "input_required")
                assert list(state["inputRequests"]) == left
            given = {"second": {"action": "accept", "content": {"name": "second"}}}
            params = {"taskId": made["taskId"], "inputResponses": given, **KNOWS}
            await client.result("tasks/update", params)
            state = await seen(client, made["taskId"], "completed")
            assert state["result"]["content"][0]["text"] == "first and second"

    run(main())


@pytest.mark.covers("design.tasks.cancel")
def test_a_cancelled_task_stops_is_recorded_and_stays_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "slow_compute", seconds=60, label="x")
            for _ in range(200):
                answer = await client.result("tasks/cancel", {"taskId": made["taskId"], **KNOWS})
                assert answer == {"resultType": "complete"}
            assert (await seen(client, made["taskId"], "cancelled"))["status"] == "cancelled"
            while not any(r["metadata"]["toolId"] for r in client.sink.records):
                await asyncio.sleep(0.01)
            [record] = [r for r in client.sink.records if r["metadata"]["toolId"]]
            assert record["error"]["reason"] == "CANCELLED"

    run(main())


@pytest.mark.covers("design.tasks.bound")
def test_a_task_is_known_to_its_caller_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "slow_compute", seconds=60, label="x")
            client.key = "somebody else's"
            for method in ("tasks/get", "tasks/cancel", "tasks/update"):
                params: dict[str, Any] = {"taskId": made["taskId"], **KNOWS}
                if method == "tasks/update":
                    params["inputResponses"] = {}
                assert (await client.error(method, params))["code"] == -32602
            client.key = None
            assert (await seen(client, made["taskId"], "working"))["taskId"] == made["taskId"]

    run(main())


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_a_client_that_does_not_know_tasks_has_none(tmp_path: Path, method: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            given = {"name": "slow_compute", "arguments": {"seconds": 0, "label": "x"}}
            assert (await client.result("tools/call", given))["resultType"] == "complete"
            error = await client.error("tools/call", {"name": "failing_job"})
            assert error["code"] == -32021
            assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}
            params = {"taskId": "x", "inputResponses": {}}
            assert (await client.error(method, params))["code"] == -32021

    run(main())


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
def test_methods_of_older_tasks_are_unknown(tmp_path: Path, method: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            assert (await client.error(method, {"taskId": "x", **KNOWS}))["code"] == -32601

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


def test_closing_cancels_tasks_and_leaves_their_records(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            await begun(client, "slow_compute", seconds=60, label="x")
        assert client.sink.records[-1]["error"]["reason"] == "CANCELLED"

    run(main())


TAG = "io.modelcontextprotocol/subscriptionId"


@pytest.mark.covers("design.tasks.notifications")
def test_whoever_listens_to_a_task_is_told_of_every_change_with_all_that_tasks_get_tells(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "confirm_delete", filename="a.txt")
            wanted = {"notifications": {"taskIds": [made["taskId"], "another"]}, **KNOWS}
            exchange = client.ask("subscriptions/listen", wanted, id="sub-1")
            await exchange.until(lambda: len(exchange.messages) > 1)
            asked = await seen(client, made["taskId"], "input_required")
            [key] = asked["inputRequests"]
            answer = {"action": "accept", "content": {"confirm": True}}
            await client.result(
                "tasks/update", {"taskId": made["taskId"], "inputResponses": {key: answer}, **KNOWS}
            )
            ended = await seen(client, made["taskId"], "completed")
            await exchange.until(lambda: exchange.messages[-1]["params"].get("status") == "completed")
            acknowledged, *told = exchange.messages
            assert acknowledged["params"]["notifications"] == {"taskIds": [made["taskId"]]}
            assert {message["method"] for message in told} == {"notifications/tasks"}
            assert {message["params"].pop("_meta")[TAG] for message in told} == {"sub-1"}
            statuses = [message["params"]["status"] for message in told]
            assert statuses[-3:] == ["input_required", "working", "completed"]
            assert {"resultType": "complete", **told[-1]["params"]} == ended
            await exchange.leave()

    run(main())


def test_a_task_that_has_ended_is_told_to_whoever_listens_late(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "slow_compute", seconds=0.01, label="x")
            await seen(client, made["taskId"], "completed")
            wanted = {"notifications": {"taskIds": [made["taskId"]]}, **KNOWS}
            exchange = client.ask("subscriptions/listen", wanted, id="sub-1")
            await exchange.until(lambda: len(exchange.messages) > 1)
            assert exchange.messages[1]["params"]["status"] == "completed"
            await exchange.leave()

    run(main())


@pytest.mark.parametrize(
    ("ids", "known", "code"), [(["a"], capable(), -32021), ("a", KNOWS, -32602), ([1], KNOWS, -32602)]
)
def test_listening_to_tasks_needs_a_client_that_knows_them_and_a_list_of_ids(
    tmp_path: Path, ids: Any, known: Any, code: int
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            told = await client.error("subscriptions/listen", {"notifications": {"taskIds": ids}, **known})
            assert told["code"] == code

    run(main())


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_tasks_of_the_extension_are_out_of_reach_for_the_revision_that_had_others(
    tmp_path: Path, method: str
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "slow_compute", seconds=0.1, label="x")
            other = Client(client.served, client.sink)
            await other.open("2025-11-25")
            assert (await other.error(method, {"taskId": made["taskId"]}))["code"] == -32601
            assert (await seen(client, made["taskId"], "completed", "cancelled"))["status"] == "completed"

    run(main())


def test_a_task_that_nobody_answers_ends_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portbook.mcp.task_board._TTL_MS", 50)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "confirm_delete", filename="a.txt")
            state = await seen(client, made["taskId"], "completed", "failed")
            refusal = state["result"]["_meta"]["portbook/refusal"]
            assert (refusal["reason"], refusal["why"]) == ("NO_ANSWER", "no answer arrived in time")

    run(main())


@pytest.mark.parametrize(
    ("limit", "reason"), [("_MAX", "TOO_MANY_IN_FLIGHT"), ("_MAX_OF_ONE", "RATE_LIMITED")]
)
def test_a_call_that_would_be_one_task_too_many_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, reason: str
) -> None:
    monkeypatch.setattr(f"portbook.mcp.task_board.{limit}", 1)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            made = await begun(client, "confirm_delete", filename="a.txt")
            assert made["resultType"] == "task"
            refused = await begun(client, "slow_compute", seconds=0.1, label="x")
            assert refused["_meta"]["portbook/refusal"]["reason"] == reason
            await client.result("tasks/cancel", {"taskId": made["taskId"], **KNOWS})

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


def test_a_task_can_be_asked_about_for_an_hour_from_its_last_change_on() -> None:
    times = iter(["2026-08-01T12:00:00.000Z", "2026-08-01T14:00:00.000Z"])
    task = Task("a", "b", lambda: next(times))
    assert task.state()["ttlMs"] == 3_600_000
    task.end("completed", {})
    assert task.state()["ttlMs"] == 3 * 3_600_000


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
