"""`ClientSubscriptions`: what one client has subscribed to, and what it is told of it.

In the handshake era a client is told of changed lists unasked, and subscribes to resources one by one. Later
it opens streams with `subscriptions/listen`. Either way it is told only of what it may read when the change
happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import partial
from typing import Final, cast

from portbook.errors import Refused
from portbook.mcp.connection_parts import Parts
from portbook.mcp.exchange import McpExchange
from portbook.mcp.list_and_resource_changes import ChangeFeed, ChangeNotification
from portbook.mcp.notifications_to_client import Notifications
from portbook.mcp.report_queue import Emit, run_on
from portbook.mcp.task_board import Task, TaskBoard
from portbook.model import JSON, Answer, Arrival, Caller, Done, JSONObject, Kind
from portbook.pipeline import Pipeline
from portbook.protocol.extensions import task_ids_of
from portbook.protocol.negotiation import Session
from portbook.wire.jsonrpc import result_frame
from portbook.wire.parsing import parse

__all__ = ["ClientSubscriptions", "Subscriber", "Subscription", "wanted_resources"]

# Streams that one connection can hold open: each is notified of every change.
_MAX_STREAMS: Final = 64


class ClientSubscriptions:
    """The subscriptions of one connection."""

    def __init__(
        self, parts: Parts, session: Session, arrival: Arrival, emit: Emit, *, is_notified: bool = True
    ) -> None:
        """Continue those of `session`.

        Where it is not `is_notified`, what to tell the client is asked for with `told_of`.
        """
        self._parts = parts
        self._is_notified = is_notified
        self._session = session
        self._arrival = arrival
        self._emit = emit
        self._streams = 0
        self._closing: list[Callable[[], None]] = []
        self._subscriber: Subscriber | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._watching: dict[str, Callable[[], None]] = {}
        if session.revision is not None:
            self.begin()
            for uri in session.watched:
                self._watch(uri)

    @property
    def is_full(self) -> bool:
        """Return whether as many streams are open as there may be."""
        return self._streams >= _MAX_STREAMS

    def begin(self) -> None:
        """Tell the client of changes from now on: a revision was agreed on."""
        if self._is_notified:
            self._unsubscribe = self._parts.changes.subscribe(self._notify)

    def renew(self) -> None:
        """Hear from the servers behind us what the session is subscribed to by now."""
        for uri in self._session.watched:
            self._watch(uri)
        for uri in self._watching.keys() - self._session.watched:
            self._unwatch(uri)

    def told_of(self, change: ChangeNotification) -> bytes | None:
        """Return the notification of a change; None where the client has not subscribed, or may not."""
        message = self._message(change)
        return message if message is not None and self._may_receive(change.changed.uri) else None

    def move_to(self, parts: Parts) -> None:
        """Tell of changes of `parts` from now on."""
        self._parts = parts
        self._subscriber = Subscriber(parts.pipeline, self._arrival)
        if self._unsubscribe is not None:
            self._unsubscribe()
            self.begin()

    def close(self) -> None:
        """End all of them: the client has disconnected."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for uri in tuple(self._watching):
            self._unwatch(uri)
        for close in tuple(self._closing):
            close()

    def govern(self, exchange: McpExchange) -> None:
        """Refuse a subscription to a resource wherever reading the resource would be refused."""
        call, handler = exchange.call, exchange.handler
        assert handler is not None
        subscriber = Subscriber(self._parts.pipeline, call.arrival, call.context.session)

        def watch(caller: Caller) -> JSON:
            refusal = subscriber.refuse(cast("str", exchange.params["uri"]), caller)
            if refusal is not None:
                raise refusal
            self._subscriber = subscriber
            told = handler(caller)
            self._watch(cast("str", exchange.params["uri"]))
            return told

        exchange.handler = watch

    def unwatch_with(self, exchange: McpExchange) -> None:
        """Unsubscribe at the server behind us, too."""
        handler = exchange.handler
        assert handler is not None

        def unwatch(caller: Caller) -> JSON:
            told = handler(caller)
            self._unwatch(cast("str", exchange.params["uri"]))
            return told

        exchange.handler = unwatch

    async def hold(self, exchange: McpExchange, bound: str) -> Answer:
        """Hold a stream open until the client cancels it, or the server ends; `bound` names its caller."""
        parts, call, handler = self._parts, exchange.call, exchange.handler
        subscriber = Subscriber(parts.pipeline, call.arrival, call.context.session)
        uris: set[str] = set()
        stops = ExitStack()

        def agree(caller: Caller) -> JSON:
            assert handler is not None
            told = handler(caller)
            uris.update(uri for uri in wanted_resources(exchange) if subscriber.refuse(uri, caller) is None)
            if parts.servers is not None:
                for uri in uris:
                    stops.callback(parts.servers.watch(uri))
            return told

        exchange.handler = agree
        self._streams += 1
        try:
            completed = await parts.pipeline.run(exchange)
            if isinstance(completed.outcome, Done):
                notifications = parts.official.notifications
                subscription = Subscription(notifications, exchange, parts.changes, parts.tasks, subscriber)
                self._closing.append(subscription.close)
                try:
                    ending = await subscription.hold(uris, bound)
                finally:
                    self._closing.remove(subscription.close)
                return Answer(result_frame(exchange.identifier, ending), 200, identity=completed.identity)
        finally:
            stops.close()
            self._streams -= 1
        return exchange.write(completed)

    def _watch(self, uri: str) -> None:
        """Let the server behind us that offers a resource tell of its changes."""
        if self._parts.servers is not None and uri not in self._watching:
            self._watching[uri] = self._parts.servers.watch(uri)

    def _unwatch(self, uri: str) -> None:
        stop = self._watching.pop(uri, None)
        if stop is not None:
            stop()

    def _notify(self, change: ChangeNotification) -> None:
        """Notify the client of a change, if it has subscribed and may. From any thread."""
        message, uri = self._message(change), change.changed.uri
        if message is not None:
            self._emit(message, lambda: self._may_receive(uri))

    def _message(self, change: ChangeNotification) -> bytes | None:
        """Return the notification of a change; None where the client has not subscribed."""
        revision, uri = self._session.revision, change.changed.uri
        if revision is None or (uri is not None and uri not in self._session.watched):
            return None
        return change.message(self._parts.official.notifications, revision)

    def _may_receive(self, uri: str | None) -> bool:
        subscriber = self._subscriber or Subscriber(self._parts.pipeline, self._arrival)
        return subscriber.may_receive(uri)


# `subscriptions/listen`: a stream of notifications, acknowledged first, filtered, tagged with its id.

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


class Subscriber:
    """What one caller may be notified of, decided for each notification.

    Keys can be revoked and the policy can change while a connection is open.
    """

    __slots__ = ("_key", "_pipeline", "_session")

    def __init__(self, pipeline: Pipeline, arrival: Arrival, session: str | None = None) -> None:
        """Decide for the caller of `arrival`; `session` is the one that the caller named."""
        self._pipeline = pipeline
        self._key = arrival.key
        self._session = session or arrival.session

    def refuse(self, uri: str, caller: Caller) -> Refused | None:
        """Return why a caller may not be notified of a resource, None if it may."""
        return self._pipeline.refuse_hearing(uri, caller, self._session)

    def may_receive(self, uri: str | None = None) -> bool:
        """Return whether its key is still valid, and, with a `uri`, may read that resource."""
        try:
            caller = self._pipeline.rules.callers.identify(self._key)
        except (Refused, OSError):  # a caller that cannot be identified gets nothing
            return False
        return uri is None or self.refuse(uri, caller) is None
