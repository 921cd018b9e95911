"""Tasks that are kept: told to whoever listens, limited in number and time, cancelled at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from portbook.mcp.task_board import Task
from support.mcp_http_client import EVERYTHING, run, serving
from support.mcp_tasks import KNOWS, begun, seen


def test_closing_cancels_tasks_and_leaves_their_records(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            await begun(client, "slow_compute", seconds=60, label="x")
        assert client.sink.records[-1]["error"]["reason"] == "CANCELLED"

    run(main())


def test_tasks_that_were_let_come_to_their_end_are_cancelled_when_that_is_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            await begun(client, "slow_compute", seconds=600, label="x")
            client.served.let_tasks_end()
            # While it is closed, and waits for the task.
            asyncio.get_running_loop().call_later(0.05, client.served.let_no_task_end)
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


def test_a_task_can_be_asked_about_for_an_hour_from_its_last_change_on() -> None:
    times = iter(["2026-08-01T12:00:00.000Z", "2026-08-01T14:00:00.000Z"])
    task = Task("a", "b", lambda: next(times))
    assert task.state()["ttlMs"] == 3_600_000
    task.end("completed", {})
    assert task.state()["ttlMs"] == 3 * 3_600_000
