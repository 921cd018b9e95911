"""A stream of notices that a client of the stateless revisions holds open: acknowledged, filtered, tagged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from portbook.canonical import json_bytes
from portbook.dialects.official import Exchange
from portbook.dialects.official_outgoing import Outgoing
from portbook.model import JSON, Caller, JSONObject, Kind
from portbook.protocol.extensions import task_ids_of
from portbook.protocol.revisions import Revision
from portbook.talking.notices import METHODS, Notices
from portbook.talking.outlets import Outlet
from portbook.talking.tasks import Task, Tasks
from portbook.tools.toolset import Changed
from portbook.wire.parsing import parse

__all__ = ["Listening", "changed_message"]

# What a client asks for, and the lists it then hears of.
_LISTS: Final[dict[str, Kind]] = {
    "toolsListChanged": "tool",
    "promptsListChanged": "prompt",
    "resourcesListChanged": "resource",
}
_RESOURCES: Final = "resourceSubscriptions"
_TASKS: Final = "taskIds"
_UPDATED: Final = "notifications/resources/updated"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_OF_TASKS: Final = "notifications/tasks"


class Listening:
    """One such stream."""

    def __init__(
        self, outgoing: Outgoing, exchange: Exchange, outlet: Outlet, notices: Notices, tasks: Tasks
    ) -> None:
        self._outgoing = outgoing
        self._outlet = outlet
        self._notices = notices
        self._tasks = tasks
        self._revision = exchange.revision
        self._id = parse(exchange.identifier.token)
        content = cast("JSONObject", exchange.call.content)
        self._params = cast("JSONObject", content["params"])
        self._filter = cast("JSONObject", self._params["notifications"])
        self._loop = asyncio.get_running_loop()
        self._is_over = asyncio.Event()

    async def hold(self, knows: Callable[[str, Caller], bool], caller: Caller, bound: str) -> bytes:
        """Pass notices on until the stream is closed; return what then ends it.

        `knows` tells whether the caller may know of a resource; `bound` is what tasks are bound to.
        """
        kinds = {kind for name, kind in _LISTS.items() if self._filter.get(name) is True}
        wanted = self._filter.get(_RESOURCES)
        uris = {uri for uri in cast("list[str]", wanted or []) if knows(uri, caller)}
        agreed: JSONObject = {name: True for name, kind in _LISTS.items() if kind in kinds}
        if wanted is not None:
            agreed[_RESOURCES] = cast("JSON", sorted(uris))
        ids = task_ids_of(self._params)
        found = [self._tasks.find(each, bound) for each in ids or []]
        tasks = [task for task in found if task is not None]
        if ids is not None:
            agreed[_TASKS] = [task.id for task in tasks]

        def hear(changed: Changed) -> None:
            if changed.kind in kinds if changed.uri is None else changed.uri in uris:
                # On the loop, so that whatever thread it comes from, nothing overtakes the acknowledgement.
                self._loop.call_soon_threadsafe(self._tell, changed)

        ends = [self._notices.listen(hear), self._notices.on_close(self.close)]
        acknowledged: JSONObject = {"notifications": agreed}
        self._outlet.send(self._outgoing.notification(_ACKNOWLEDGED, acknowledged, self._revision, self._id))
        for task in tasks:
            ends.append(task.watch(partial(self._tell_of, task)))
            self._tell_of(task)  # it may have ended before anybody listened
        try:
            await self._is_over.wait()
        finally:
            for end in ends:
                end()
        meta: JSONObject = {"io.modelcontextprotocol/subscriptionId": self._id}
        return json_bytes({"resultType": "complete", "_meta": meta})

    def _tell(self, changed: Changed) -> None:
        self._outlet.send(changed_message(self._outgoing, changed, self._revision, self._id))

    def _tell_of(self, task: Task) -> None:
        self._outlet.send(self._outgoing.extension(_OF_TASKS, task.state(), self._id))

    def close(self) -> None:
        """End the stream. From any thread."""
        self._loop.call_soon_threadsafe(self._is_over.set)


def changed_message(
    outgoing: Outgoing, changed: Changed, revision: Revision, subscription: JSON = None
) -> bytes:
    """Return the notification of a change."""
    if changed.uri is not None:
        return outgoing.notification(_UPDATED, {"uri": changed.uri}, revision, subscription)
    return outgoing.notification(METHODS[changed.kind], {}, revision, subscription)
