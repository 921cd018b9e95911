"""Extensions: for whoever declares them, in the revisions that have them, and with params of their shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_client import EVERYTHING, Client, capable, run, serving
from support.mcp_tasks import KNOWS, TASKS, begun, seen


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
            assert (await other.error(method, {"taskId": made["taskId"]}))["code"] == -32602
            assert (await seen(client, made["taskId"], "completed", "cancelled"))["status"] == "completed"

    run(main())
