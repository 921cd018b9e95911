"""A client that asked for a task: before there is one it is asked at once, then its questions wait there."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from portbook.errors import Failed, Reason
from portbook.mcp.task_board import Task
from portbook.mcp.task_methods import TaskClient


class Live:
    """A client that stays connected."""

    def __init__(self, *, can_be_asked: bool = True) -> None:
        self.can_be_asked = can_be_asked

    def require(self, request: Any) -> None:
        if not self.can_be_asked:
            raise Failed(Reason.NO_ANSWER)

    async def ask(self, requests: Any, is_usable: Any) -> Any:
        return {key: {"by": "live"} for key in requests}


QUESTION: dict[str, Any] = {"q": {"method": "roots/list"}}


def usable(key: str, answer: Any) -> bool:
    return True


def test_questions_wait_in_the_task_once_there_is_one() -> None:
    async def main() -> None:
        client = TaskClient(cast("Any", Live()))
        assert await client.ask(QUESTION, usable) == {"q": {"by": "live"}}
        assert not client.detach()
        task = Task("t", "b", lambda: "2026-01-01T00:00:00Z")
        client.on_detach = lambda: setattr(client, "task", task)
        assert client.detach("working on it")
        asking = asyncio.ensure_future(client.ask(QUESTION, usable))
        await asyncio.sleep(0)
        assert (client.is_waiting, task.questions()) == (True, QUESTION)
        task.answer({"q": {"by": "task"}})
        assert await asking == {"q": {"by": "task"}}

    asyncio.run(main())


def test_what_the_client_cannot_be_asked_fails_at_once() -> None:
    async def main() -> None:
        client = TaskClient(cast("Any", Live(can_be_asked=False)))
        client.task = Task("t", "b", lambda: "2026-01-01T00:00:00Z")
        with pytest.raises(Failed):
            await client.ask(QUESTION, usable)

    asyncio.run(main())
