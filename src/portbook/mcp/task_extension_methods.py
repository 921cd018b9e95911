"""The methods of the tasks extension: tasks/get, tasks/update, tasks/cancel. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from portbook.errors import Reason, Refused
from portbook.model import Caller, JSONObject

__all__ = ["TaskDesk", "created", "task_answers"]


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
