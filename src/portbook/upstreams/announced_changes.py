"""What we want to hear from a server while nobody calls it: changed lists, and changed resources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.message_checks_and_meta import meta_for
from portbook.upstreams.running_call import RunningCall

__all__ = ["ChangedLists", "Subscriptions"]

# `ChangedLists`: asks a server for its lists again when it says that they have changed.
#
# One question at a time, and a pause after each: a server that says so without end is asked as often as any.

# Several lists often change at once, and each says so.
_COALESCE_S: Final = 0.05
_PAUSE_S: Final = 0.5

Ask = Callable[[frozenset[str]], Coroutine[Any, Any, None]]


class ChangedLists:
    """What one server has announced, until it was asked."""

    def __init__(self, ask: Ask) -> None:
        """`ask` asks for the lists; it gets the notifications that came before, and raises nothing."""
        self._ask = ask
        self._announced: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")

    def announce(self, method: str) -> None:
        """Take a notification that a list has changed."""
        self._announced.add(method)
        if self._timer is None and self._asking is None:
            self._ask_soon()

    async def close(self) -> None:
        """Ask no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait((self._asking,))

    def _ask_soon(self) -> None:
        loop = asyncio.get_running_loop()
        wait_s = max(_COALESCE_S, self._asked_at + _PAUSE_S - loop.time())
        self._timer = loop.call_later(wait_s, self._begin)

    def _begin(self) -> None:
        self._timer = None
        announced, self._announced = frozenset(self._announced), set()
        self._asking = asyncio.get_running_loop().create_task(self._ask(announced))
        self._asking.add_done_callback(self._ended)

    def _ended(self, asking: asyncio.Task[None]) -> None:
        self._asking = None
        self._asked_at = asyncio.get_running_loop().time()
        if self._announced and not asking.cancelled():
            self._ask_soon()


# The most resources of one server that are watched.
_MAX_WATCHED: Final = 1000
# After a stream that ended; a server that ends each at once is not asked more often.
_AGAIN_S: Final = 5.0


class Subscriptions:
    """The subscriptions at one server, made again with each connection."""

    def __init__(self) -> None:
        self._uris: set[str] = set()
        self._at: UpstreamConnection | None = None
        self._stream: tuple[UpstreamConnection, RunningCall] | None = None

    def watch(self, uri: str) -> None:
        """Hear of changes of a resource from now on, and over every later connection."""
        if uri in self._uris or len(self._uris) >= _MAX_WATCHED:
            return
        self._uris.add(uri)
        connection = self._at
        if connection is None or connection.is_lost:
            return
        if connection.revision.has_handshake:
            self._ask(connection, "resources/subscribe", uri)
        else:
            self._listen(connection)

    def unwatch(self, uri: str) -> None:
        """Hear no more of a resource."""
        if uri not in self._uris:
            return
        self._uris.discard(uri)
        connection = self._at
        if connection is None or connection.is_lost:
            return
        if connection.revision.has_handshake:
            self._ask(connection, "resources/unsubscribe", uri)
        else:
            self._listen(connection)

    def need(self, connection: UpstreamConnection) -> bool:
        """Return whether a connection brings changes of resources that somebody watches."""
        return self._at is connection and bool(self._uris)

    def begin(self, connection: UpstreamConnection) -> None:
        """Subscribe over a connection, unless another one does.

        Servers of the handshake era tell of lists unasked.
        """
        if self._at is not None and not self._at.is_lost:
            return
        self._at = connection
        if connection.revision.has_handshake:
            for uri in self._uris:
                self._ask(connection, "resources/subscribe", uri)
        else:
            self._listen(connection)

    def leave(self, connection: UpstreamConnection, other: UpstreamConnection | None) -> None:
        """Hear no more over a connection that ends; an `other` one takes its place."""
        if self._at is connection:
            self._at = None
            if other is not None:
                self.begin(other)

    def _ask(self, connection: UpstreamConnection, method: str, uri: str) -> None:
        offered = connection.capabilities.get("resources")
        if isinstance(offered, dict) and offered.get("subscribe"):
            connection.request_aside(method, {"uri": uri})

    def _listen(self, connection: UpstreamConnection) -> None:
        """Open the stream of notifications, in place of the one before."""
        if self._stream is not None and not self._stream[0].is_lost:
            self._stream[0].forget(self._stream[1], is_cancelled=not self._stream[1].result.done())
        wanted: JSONObject = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
        }
        if self._uris:
            wanted["resourceSubscriptions"] = cast("JSON", sorted(self._uris))
        params: JSONObject = {"_meta": meta_for(connection.revision), "notifications": wanted}
        call = connection.request_aside("subscriptions/listen", params, is_stream=True)
        self._stream = None if call is None else (connection, call)
        if call is not None:
            call.result.add_done_callback(lambda _: self._ended(connection, call))

    def _ended(self, connection: UpstreamConnection, call: RunningCall) -> None:
        if self._stream == (connection, call) and not connection.is_lost:
            loop = asyncio.get_running_loop()
            loop.call_later(_AGAIN_S, self._listen_again, connection, call)

    def _listen_again(self, connection: UpstreamConnection, call: RunningCall) -> None:
        if self._stream == (connection, call) and not connection.is_lost:
            self._listen(connection)
