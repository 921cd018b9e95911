"""`ClientSubscriptions`: what one client has subscribed to, and what it is told of it.

In the handshake era a client is told of changed lists unasked, and subscribes to resources one by one. Later
it opens streams. Either way it is told only of what it may read when the change happens.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, cast

from portbook.mcp.connection_parts import Parts
from portbook.mcp.exchange import McpExchange
from portbook.mcp.list_and_resource_changes import ChangeNotification, Subscriber
from portbook.mcp.messages_during_call import Emit
from portbook.model import JSON, Answer, Arrival, Caller, Done
from portbook.protocol.negotiated_session import Session
from portbook.wire.jsonrpc import result_frame

__all__ = ["ClientSubscriptions"]

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
        # Late: one revision has streams.
        from portbook.mcp.subscription_streams import Subscription, wanted_resources

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
