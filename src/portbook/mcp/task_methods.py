"""The tasks extension: calls that go on after their answer. Pure: no I/O; where tasks are kept is a port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from portbook.errors import Reason, Refused
from portbook.model import Caller, JSONObject

__all__ = ["TaskDesk", "created", "task_answers"]


class TaskDesk(Protocol):
    """Where tasks are kept, each for whoever made the call."""

    def read(self, task_id: str, bound: str) -> JSONObject | None:
        """Return what is known of a task; None where the caller has no such task."""
        ...

    def answer(self, task_id: str, bound: str, answers: JSONObject) -> bool:
        """Hand a task the answers it waits for, others are ignored; return whether there is such a task."""
        ...

    def cancel(self, task_id: str, bound: str) -> bool:
        """End a task, if it has not ended; return whether there is such a task."""
        ...


def created(state: JSONObject) -> JSONObject:
    """Return the answer to a call that goes on as a task."""
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
