"""Waits for the end of a task of 2025-11-25 (`tasks/result`), and passes on what its call asks.

`TaskClient` is the client that asked for the task: what the call asks it waits in the task, until the client
waits for the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from portbook.errors import Failed
from portbook.mcp.questions_to_client import LiveClient
from portbook.mcp.task_board import Task
from portbook.mcp.task_methods import with_related_task
from portbook.model import JSON, Draft, JSONObject

__all__ = ["TaskClient", "attend_task"]

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
