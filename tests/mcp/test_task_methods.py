"""What a client may do with a task of its own: read it, answer it, cancel it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_client import EVERYTHING, run, serving
from support.mcp_tasks import KNOWS, begun, seen


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
