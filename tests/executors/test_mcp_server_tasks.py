"""A task that a server created: followed to its result, asked for, and cancelled with its call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.errors import Failed
from portbook.executors.mcp_server_tasks import follow_task
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.upstreams.message_checks_and_meta import RpcError
from support.fake_upstream import FakeLink, connected, text

CREATED: dict[str, Any] = {"resultType": "task", "taskId": "t", "status": "working", "pollIntervalMs": 1}


class Tasks(FakeLink):
    """Answers `tasks/get` with one state after the other."""

    def __init__(self, *states: dict[str, Any]) -> None:
        super().__init__()
        self._states = list(states)

    def answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "tasks/get":
            state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
            self.say({"id": message["id"], "result": {**CREATED, **state}})
        elif "id" in message:
            self.say({"id": message["id"], "result": {"resultType": "complete"}})


def follow(link: Tasks, timeout_s: float = 5.0) -> Any:
    async def ask(requests: dict[str, Any]) -> dict[str, Any]:
        return {key: {"action": "accept"} for key in requests}

    async def main() -> Any:
        connection = await connected(link)
        connection.agree(REVISIONS["2026-07-28"])
        return await follow_task(connection, dict(CREATED), None, ask, {}, timeout_s)

    return asyncio.run(main())


def test_the_result_of_a_task_is_the_result_of_the_call() -> None:
    done = {"status": "completed", "result": text("done")}
    assert follow(Tasks({"status": "working"}, done))["content"][0]["text"] == "done"


def test_what_a_task_asks_is_answered() -> None:
    asks = {"status": "input_required", "inputRequests": {"name": {"method": "roots/list"}}}
    link = Tasks(asks, {"status": "completed", "result": text("done")})
    follow(link)
    [update] = [each for each in link.sent if each["method"] == "tasks/update"]
    assert update["params"]["inputResponses"] == {"name": {"action": "accept"}}


def test_a_task_that_failed_has_the_servers_error() -> None:
    with pytest.raises(RpcError) as caught:
        follow(Tasks({"status": "failed", "error": {"code": -5, "message": "no"}}))
    assert caught.value.code == -5


def test_a_task_that_takes_too_long_is_cancelled() -> None:
    link = Tasks({"status": "working"})
    with pytest.raises(Failed):
        follow(link, 0.05)
    assert link.sent[-1]["method"] == "tasks/cancel"
