"""The methods of tasks: those of the extension, and those that 2025-11-25 has. Pure: no I/O.

The extension has tasks/get, tasks/update and tasks/cancel. 2025-11-25 has tasks/get, tasks/list, tasks/cancel
and tasks/result, for whoever made the tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from portbook.errors import Finding, Reason, Refused
from portbook.mcp.listings import page_of
from portbook.mcp.task_board import Task
from portbook.model import JSON, Caller, JSONObject

__all__ = [
    "RESULT_OF_TASK",
    "OwnedTasks",
    "TaskDesk",
    "asked_by",
    "created",
    "task_answers",
    "task_of",
    "task_request_answers",
    "with_related_task",
]


class TaskDesk(Protocol):
    """The store of tasks, each for the caller that made it."""

    def read(self, task_id: str, bound: str) -> JSONObject | None:
        """Return the state of a task; None where the caller has no such task."""
        ...

    def answer(self, task_id: str, bound: str, answers: JSONObject) -> bool:
        """Give a task its answers, ignoring unrequested ones; return whether the caller has such a task."""
        ...

    def cancel(self, task_id: str, bound: str) -> bool:
        """Cancel a task, if it has not ended; return whether the caller has such a task."""
        ...


def created(state: JSONObject) -> JSONObject:
    """Return the answer to a call that continues as a task."""
    kept = ("taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs")
    own = {name: state[name] for name in kept if name in state}
    return {"resultType": "task", **own, "status": "working"}


def task_answers(desk: TaskDesk) -> dict[str, Callable[[Any, Caller], JSONObject]]:
    """Return the handlers of the extension's methods."""

    def get(asked: Any, caller: Caller) -> JSONObject:
        state = desk.read(_id(asked), asked.bound)
        if state is None:
            raise Refused(Reason.UNKNOWN_TASK)
        return {"resultType": "complete", **state}

    def update(asked: Any, caller: Caller) -> JSONObject:
        answers = cast("JSONObject", asked.params["inputResponses"])
        if not desk.answer(_id(asked), asked.bound, answers):
            raise Refused(Reason.UNKNOWN_TASK)
        return {"resultType": "complete"}

    def cancel(asked: Any, caller: Caller) -> JSONObject:
        if not desk.cancel(_id(asked), asked.bound):
            raise Refused(Reason.UNKNOWN_TASK)
        return {"resultType": "complete"}

    return {"tasks/get": get, "tasks/update": update, "tasks/cancel": cancel}


def _id(asked: Any) -> str:
    return cast("str", asked.params["taskId"])


# Tasks as 2025-11-25 has them.

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
        return {**ended, "_meta": with_related_task(ended.get("_meta"), task.id)}

    return {"tasks/get": get, "tasks/list": listed, "tasks/cancel": cancel, RESULT_OF_TASK: result}


def _at_task(told: str) -> Finding:
    return Finding("/params/taskId", told, "task", "")


def with_related_task(meta: JSON, task_id: str) -> JSONObject:
    """Return the `_meta` of a message that belongs to a task."""
    return {**(meta if isinstance(meta, dict) else {}), _META_TASK: {"taskId": task_id}}
