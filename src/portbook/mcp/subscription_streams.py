"""`subscriptions/listen`: a stream of notifications, acknowledged first, filtered, tagged with its id."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import ExitStack
from functools import partial
from typing import Final, cast

from portbook.mcp.exchange import McpExchange
from portbook.mcp.from_any_thread import run_on
from portbook.mcp.list_and_resource_changes import ChangeFeed, ChangeNotification, Subscriber
from portbook.mcp.notifications_to_client import Notifications
from portbook.mcp.task_board import Task, TaskBoard
from portbook.model import JSON, JSONObject, Kind
from portbook.protocol.extensions import task_ids_of
from portbook.wire.parsing import parse

__all__ = ["Subscription", "wanted_resources"]

# The members of a filter, and the lists that they subscribe to.
_LISTS: Final[dict[str, Kind]] = {
    "toolsListChanged": "tool",
    "promptsListChanged": "prompt",
    "resourcesListChanged": "resource",
}
_RESOURCES: Final = "resourceSubscriptions"
_TASKS: Final = "taskIds"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_OF_TASKS: Final = "notifications/tasks"


class Subscription:
    """One stream, open until the client cancels it or may receive nothing more."""

    def __init__(
        self,
        notifications: Notifications,
        exchange: McpExchange,
        changes: ChangeFeed,
        tasks: TaskBoard,
        subscriber: Subscriber,
    ) -> None:
        """Subscribe for `subscriber`, which decides what may be sent at the time of each change."""
        self._notifications = notifications
        self._outlet = exchange.way_out()
        self._changes = changes
        self._tasks = tasks
        self._subscriber = subscriber
        self._revision = exchange.revision
        self._id = parse(exchange.identifier)
        self._params = exchange.params
        self._filter = cast("JSONObject", self._params["notifications"])
        self._loop = asyncio.get_running_loop()
        self._is_over = asyncio.Event()

    async def hold(self, uris: Collection[str], bound: str) -> bytes:
        """Send notifications until the stream is closed; return the result that ends it.

        `uris` are the resources that the caller may subscribe to; `bound` identifies the caller of tasks.
        """
        kinds = {kind for name, kind in _LISTS.items() if self._filter.get(name) is True}
        agreed: JSONObject = {name: True for name, kind in _LISTS.items() if kind in kinds}
        if self._filter.get(_RESOURCES) is not None:
            agreed[_RESOURCES] = cast("JSON", sorted(uris))
        ids = task_ids_of(self._params)
        found = [self._tasks.find(each, bound) for each in ids or []]
        tasks = [task for task in found if task is not None]
        if ids is not None:
            agreed[_TASKS] = [task.id for task in tasks]

        def notify(change: ChangeNotification) -> None:
            changed = change.changed
            if changed.kind in kinds if changed.uri is None else changed.uri in uris:
                # Always deferred, from any thread, so that nothing overtakes the acknowledgement.
                self._loop.call_soon_threadsafe(self._tell, change)

        acknowledged: JSONObject = {"notifications": agreed}
        with ExitStack() as ends:
            ends.callback(self._changes.subscribe(notify))
            ends.callback(self._changes.on_close(self.close))
            self._outlet.send(
                self._notifications.notification(_ACKNOWLEDGED, acknowledged, self._revision, self._id)
            )
            for task in tasks:
                ends.callback(task.watch(partial(self._tell_of, task)))
                self._tell_of(task)  # it may have ended before the subscription
            await self._is_over.wait()
        return self._notifications.ending(self._id, self._revision)

    def _tell(self, change: ChangeNotification) -> None:
        if self._subscriber.may_receive(change.changed.uri):
            self._outlet.tell(change.message(self._notifications, self._revision, self._id))
        elif not self._subscriber.may_receive():
            self._is_over.set()

    def _tell_of(self, task: Task) -> None:
        if self._subscriber.may_receive():
            self._outlet.tell(self._notifications.tagged(_OF_TASKS, task.state(), self._id))
        else:
            self._is_over.set()

    def close(self) -> None:
        """End the stream. From any thread."""
        run_on(self._loop, self._is_over.set)


def wanted_resources(exchange: McpExchange) -> list[str]:
    """Return the resources that a request subscribes to."""
    wanted = cast("JSONObject", exchange.params["notifications"]).get(_RESOURCES)
    return cast("list[str]", wanted or [])
