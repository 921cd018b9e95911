"""The methods of tasks: those of the extension, and those that 2025-11-25 has.

The extension has tasks/get, tasks/update and tasks/cancel. 2025-11-25 has tasks/get, tasks/list, tasks/cancel
and tasks/result, for whoever made the tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

from portbook.errors import Failed, Finding, Reason, Refused
from portbook.mcp.listings_and_cache_lifetime import page_of
from portbook.mcp.questions_to_client import LiveClient
from portbook.mcp.task_board import Task
from portbook.model import JSON, Caller, Draft, JSONObject

__all__ = [
    "RESULT_OF_TASK",
    "OwnedTasks",
    "TaskClient",
    "TaskDesk",
    "asked_by",
    "attend_task",
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


# Waits for the end of a task of 2025-11-25 (`tasks/result`), and passes on what its call asks.
#
# `TaskClient` is the client that asked for the task: what the call asks it waits in the task, until the
# client waits for the result.

IsUsable = Callable[[str, JSONObject], bool]


class TaskClient:
    """The client of a call that runs as a task from its start."""

    __slots__ = ("_live", "on_detach", "task")

    def __init__(self, live: LiveClient) -> None:
        """Reach the client as `live` does, except for questions."""
        self._live = live
        self.on_detach: Callable[[], None] | None = None
        """Turns the call into a task."""
        self.task: Task | None = None

    @property
    def capabilities(self) -> JSONObject:
        """Return the capabilities that the client has declared."""
        return self._live.capabilities

    @property
    def is_waiting(self) -> bool:
        """Return whether the tool waits for an answer."""
        return self._live.is_waiting if self.task is None else self.task.is_waiting

    @property
    def answers_later(self) -> bool:
        """Return False: it answers while the tool waits."""
        return False

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return the capabilities that the client lacks for this request; None if it can be asked."""
        return self._live.lacks(request)

    def hears(self, level: str) -> bool:
        """Return whether the client has enabled that level."""
        return self._live.hears(level)

    def log(self, level: str, data: Draft[JSON], logger: str | None) -> None:
        """Send the client a log message."""
        self._live.log(level, data, logger)

    async def room(self) -> None:
        """Wait for room for the next report."""
        await self._live.room()

    def flush(self) -> None:
        """Send every report that waits."""
        self._live.flush()

    async def ask(self, requests: Mapping[str, JSONObject], is_usable: IsUsable) -> dict[str, JSONObject]:
        """Return the answers, which come with the request for the task's result.

        Raises `Failed` where the client lacks a capability, or does not answer.
        """
        if self.task is None:
            return await self._live.ask(requests, is_usable)
        for request in requests.values():
            self._live.require(request)
        return await self.task.ask(requests, is_usable)

    async def end_round(self, requests: Mapping[str, JSONObject], memo: JSON) -> None:
        """Fail: this era has no rounds."""
        await self._live.end_round(requests, memo)

    def detach(self, message: str | None = None) -> bool:
        """Continue as a task; return whether it does."""
        if self.task is None and self.on_detach is not None:
            self.on_detach()
        if self.task is not None:
            self.task.say(message)
        return self.task is not None

    def let_go(self) -> None:
        """Close the stream that the client waits on, if it can resume for the answer."""
        self._live.let_go()

    def complete_elicitation(self, identifier: str) -> None:
        """Tell the client that its user is done with a page."""
        self._live.complete_elicitation(identifier)


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
    given = request.get("params")
    params = given if isinstance(given, dict) else {}
    related = with_related_task(params.get("_meta"), task.id)
    asked: JSONObject = {**request, "params": {**params, "_meta": related}}
    try:
        task.answer(cast("JSONObject", await client.ask({key: asked}, lambda _key, _answer: True)))
    except Failed as failure:
        task.refuse(key, failure)
