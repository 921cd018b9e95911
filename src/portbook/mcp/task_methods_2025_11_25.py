"""Tasks as 2025-11-25 has them: tasks/get, tasks/list, tasks/cancel, tasks/result, for whoever made them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from portbook.errors import Failed, Finding, Reason, Refused
from portbook.mcp.clients import LiveClient
from portbook.mcp.listing import page_of
from portbook.mcp.task_board import Task
from portbook.model import JSON, Caller, JSONObject

__all__ = ["RESULT_OF_TASK", "OwnedTasks", "asked_by", "attend_task", "task_of", "task_request_answers"]

# The one request that waits for a task to end.
RESULT_OF_TASK: Final = "tasks/result"

_META_TASK: Final = "io.modelcontextprotocol/related-task"


class OwnedTasks(Protocol):
    """The tasks of each caller."""

    def find(self, task_id: str, bound: str) -> Task | None:
        """Return a task; None where the caller has no such task."""
        ...

    def of(self, bound: str) -> list[Task]:
        """Return all tasks of a caller, the oldest first."""
        ...


def asked_by(bound: str) -> str:
    """Return to whom tasks are bound that a caller asked for; tasks of the extension are others."""
    return f"asked:{bound}"


def task_of(state: JSONObject) -> JSONObject:
    """Return the state of a task in the words of 2025-11-25."""
    kept = ("taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt")
    told: JSONObject = {name: state[name] for name in kept if name in state}
    return {**told, "ttl": state["ttlMs"], "pollInterval": state["pollIntervalMs"]}


def task_request_answers(tasks: OwnedTasks) -> dict[str, Callable[[Any, Caller], JSONObject]]:
    """Return the handlers of these methods; that of a result is called when the task has ended."""

    def found(asked: Any) -> Task:
        task = tasks.find(cast("str", asked.params["taskId"]), asked_by(asked.bound))
        if task is None:
            raise Refused(Reason.UNKNOWN_TASK)
        return task

    def get(asked: Any, caller: Caller) -> JSONObject:
        return task_of(found(asked).state())

    def listed(asked: Any, caller: Caller) -> JSONObject:
        cursor = asked.params.get("cursor")
        own = [(task.id, task_of(task.state())) for task in tasks.of(asked_by(asked.bound))]
        page, following = page_of(own, cursor if isinstance(cursor, str) else None)
        result: JSONObject = {"tasks": cast("JSON", page)}
        return result if following is None else {**result, "nextCursor": following}

    def cancel(asked: Any, caller: Caller) -> JSONObject:
        task = found(asked)
        if task.is_over:
            raise Refused(Reason.BAD_PARAMS, (_at_task("has ended, and cannot be cancelled"),))
        task.cancel()
        return task_of(task.state())

    def result(asked: Any, caller: Caller) -> JSONObject:
        task = found(asked)
        if task.failure is not None:
            raise task.failure
        ended = task.state().get("result")
        if not isinstance(ended, dict):
            raise Refused(Reason.BAD_PARAMS, (_at_task("was cancelled, and has no result"),))
        return {**ended, "_meta": {**_object(ended.get("_meta")), _META_TASK: {"taskId": task.id}}}

    return {"tasks/get": get, "tasks/list": listed, "tasks/cancel": cancel, RESULT_OF_TASK: result}


async def attend_task(task: Task, client: LiveClient) -> None:
    """Wait until a task has ended; the client that waits for its result is asked what it asks meanwhile."""
    changed, asking = asyncio.Event(), dict[str, asyncio.Task[None]]()
    stop = task.watch(changed.set)
    try:
        while not task.is_over:
            changed.clear()
            for key, request in task.questions().items():
                if key not in asking or asking[key].done():
                    asking[key] = asyncio.get_running_loop().create_task(_ask(task, key, request, client))
            await changed.wait()
    finally:
        stop()
        for each in asking.values():
            each.cancel()


async def _ask(task: Task, key: str, request: JSONObject, client: LiveClient) -> None:
    params = _object(request.get("params"))
    related: JSONObject = {**_object(params.get("_meta")), _META_TASK: {"taskId": task.id}}
    asked: JSONObject = {**request, "params": {**params, "_meta": related}}
    try:
        task.answer(cast("JSONObject", await client.ask({key: asked}, lambda _key, _answer: True)))
    except Failed as failure:
        task.refuse(key, failure)


def _at_task(told: str) -> Finding:
    return Finding("/params/taskId", told, "task", "")


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
