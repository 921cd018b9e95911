"""Tasks in the words of 2025-11-25, for their maker alone."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from portbook.clock import SystemClock
from portbook.errors import Failed, Reason, Refused
from portbook.mcp.task_board import Task, TaskBoard
from portbook.mcp.task_methods import asked_by, attend_task, task_of, task_request_answers

NOBODY = cast("Any", None)


def made(bound: str = "me") -> tuple[Task, dict[str, Any]]:
    board = TaskBoard(SystemClock())
    return board.make(asked_by(bound)), task_request_answers(board)


def asked(task: Task, bound: str = "me") -> Any:
    return SimpleNamespace(params={"taskId": task.id}, bound=bound)


def test_the_state_has_the_names_of_its_revision() -> None:
    task, _ = made()
    told = task_of(task.state())
    assert {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"} == told.keys()


def test_a_task_is_for_its_maker_alone() -> None:
    task, answers = made()
    for method in ("tasks/get", "tasks/cancel", "tasks/result"):
        with pytest.raises(Refused) as caught:
            answers[method](asked(task, "other"), NOBODY)
        assert caught.value.reason is Reason.UNKNOWN_TASK
    assert answers["tasks/list"](asked(task, "other"), NOBODY) == {"tasks": []}


def test_the_failure_of_a_task_is_that_of_its_call() -> None:
    task, answers = made()
    task.end("failed", {"error": {}}, Failed(Reason.TIMEOUT))
    with pytest.raises(Failed) as caught:
        answers["tasks/result"](asked(task), NOBODY)
    assert caught.value.reason is Reason.TIMEOUT


def test_a_question_without_an_answer_fails_in_the_task() -> None:
    class Refusing:
        async def ask(self, requests: Any, is_usable: Any) -> Any:
            raise Failed(Reason.NO_ANSWER)

    async def main() -> None:
        task, _ = made()
        asking = asyncio.ensure_future(task.ask({"q": {"method": "roots/list"}}, lambda *_: True))
        waiting = asyncio.ensure_future(attend_task(task, cast("Any", Refusing())))
        with pytest.raises(Failed):
            await asking
        task.end("completed", {"result": {}})
        await waiting

    asyncio.run(main())
