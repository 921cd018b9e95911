"""`Supervisor`: one server, started when it is needed, ended when it is idle, started again when it fails.

A server is asked what it offers whenever a connection to it begins, before the first call goes through it: so
no call reaches a tool whose definition changed behind our back. Starts that fail wait longer each time. Calls
do not wait for a server that just failed: they are refused, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from portbook.model import JSONObject
from portbook.upstreams.announced_changes import ChangedLists, Subscriptions
from portbook.upstreams.connection_and_server_questions import Events, UpstreamConnection
from portbook.upstreams.handshake import Introduction, words_of
from portbook.upstreams.listed_definitions import Offer, TooMany, observe
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.message_checks_and_meta import AnswerChecks, BadAnswer, RpcError
from portbook.upstreams.session_isolation import Instance, InstanceOwner, Instances
from portbook.upstreams.transport import ConnectionLost, NotSent, UpstreamLink

__all__ = ["ServerState", "ServerStatus", "Supervisor", "Watcher"]

# `ServerStatus`: what operators see of a server.

ServerState = Literal["stopped", "starting", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server at one moment."""

    alias: str
    transport: str
    state: ServerState
    revision: str | None
    tools: int
    withheld: int
    last_error: str | None
    restarts: int

    def as_data(self) -> JSONObject:
        """Return it as JSON."""
        return {
            "name": self.alias,
            "transport": self.transport,
            "state": self.state,
            "revision": self.revision,
            "tools": self.tools,
            "withheld": self.withheld,
            "last_error": self.last_error,
            "restarts": self.restarts,
        }


_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 60.0
# A server that ran for this long did not fail to start.
_SETTLED_S: Final = 10.0


class Watcher(NamedTuple):
    """Who learns what of a server."""

    offered: Callable[[object, Offer, frozenset[str]], Awaitable[None]]
    """A process of it said what it offers; with the notifications of changed lists that it sent before."""
    ended: Callable[[object], None]
    """A process has ended, and offers nothing more."""
    updated: Callable[[str], None]
    """A resource has changed: its URI."""
    tell: Callable[[str], None]
    """Something for the operator's log."""


class Supervisor:
    """Keeps the connections to one server."""

    def __init__(
        self,
        declared: DeclaredUpstream,
        make_link: Callable[[], UpstreamLink],
        checks: AnswerChecks,
        watcher: Watcher,
    ) -> None:
        self.declared = declared
        self._watcher = watcher
        self._introduction = Introduction(declared, make_link, checks, self._close)
        self._subscriptions = Subscriptions()
        self._instances = Instances()
        self._closing: set[asyncio.Task[None]] = set()
        self._odd = 0
        self._is_closed = False
        self.has_offered = False
        """Whether it has ever said what it offers."""
        self._problem = ""
        self.last_error: str | None = None
        """Why it failed last, with what it said itself: for operators."""
        self.restarts = 0
        self.revision: str | None = None

    @property
    def state(self) -> ServerState:
        """Return how it is doing."""
        if self._instances.connection() is not None:
            return "ready"
        if any(each.starting is not None for each in self._instances):
            return "starting"
        return "failed" if self.last_error is not None else "stopped"

    def ready(self, owner: InstanceOwner | None = None) -> UpstreamConnection | None:
        """Return the connection of an owner, or that of everybody, if there is one now."""
        instance = self._instances.find(owner)
        connection = None if instance is None else instance.connection
        if instance is None or connection is None or connection.is_lost:
            return None
        instance.used_at = asyncio.get_running_loop().time()
        return connection

    async def connected(self, owner: InstanceOwner | None = None) -> UpstreamConnection:
        """Return the connection of an owner, or that of everybody, begun now if there is none.

        Raises `NotSent` where it cannot be reached or started.
        """
        while (connection := self.ready(owner)) is None:
            starting = self._starting(owner)
            # Not shielded: a start that was stopped would look as if its caller had been cancelled.
            await asyncio.wait((starting,))
            if not starting.cancelled():
                return starting.result()
            if owner is not None:
                raise NotSent("its process was stopped")
        return connection

    def _starting(self, owner: InstanceOwner | None) -> asyncio.Task[UpstreamConnection]:
        """Return the start that is under way, begun now if there is none.

        Raises `NotSent` where there may be none.
        """
        if self._is_closed:
            raise NotSent("Portbook is ending")
        instance, loop = self._instances.find(owner) or self._added(owner), asyncio.get_running_loop()
        if instance.starting is None:
            if loop.time() < instance.retry_at:
                raise NotSent(f"it failed a moment ago: {self._problem}")
            instance.starting = loop.create_task(self._start(instance))
            instance.starting.add_done_callback(_retrieved)
        return instance.starting

    def watch(self, uri: str) -> None:
        """Hear of changes of one of its resources from now on."""
        self._subscriptions.watch(uri)

    def unwatch(self, uri: str) -> None:
        """Hear no more of one of its resources."""
        self._subscriptions.unwatch(uri)

    def end_session(self, session: str) -> None:
        """End the process of a session that has ended."""
        for instance in self._instances.of_session(session):
            self._stop(instance)

    async def close(self) -> None:
        """End everything."""
        self._is_closed = True
        await self._stop_all()
        if self._closing:
            await asyncio.wait(tuple(self._closing))

    async def restart(self) -> None:
        """End it; start it again at once, and ask it anew what it speaks and offers.

        Raises `NotSent` where it cannot be started.
        """
        await self._stop_all()
        self._introduction.forget()
        self.restarts += 1
        await self.connected()

    # -- starts

    def _added(self, owner: InstanceOwner | None) -> Instance:
        surplus = None if owner is None else self._instances.surplus()
        if surplus is not None:
            self._stop(surplus)
        return self._instances.add(owner)

    async def _start(self, instance: Instance) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        instance.began_at = loop.time()
        try:
            connection = await self._begin(instance)
        except NotSent as error:
            self._failed(instance, str(error), error.last_words, was_ready=False)
            raise
        finally:
            instance.starting = None
        self.last_error = None
        instance.used_at = loop.time()
        self._watch_idle(instance)
        return connection

    async def _begin(self, instance: Instance) -> UpstreamConnection:
        events = Events(
            partial(self._changed, instance), partial(self._lost, instance), self._note_oddity, self._troubled
        )
        offered = partial(self._watcher.offered, instance)
        connection = await self._introduction.connect(events, offered)
        instance.connection = connection
        self.revision = connection.revision.name
        self.has_offered = True
        self._subscriptions.begin(connection)
        return connection

    def _failed(self, instance: Instance, problem: str, last_words: str | None, *, was_ready: bool) -> None:
        loop = asyncio.get_running_loop()
        instance.failures += 1
        wait_s = min(_FIRST_WAIT_S * 2 ** (instance.failures - 1), _LONGEST_WAIT_S)
        if was_ready and instance.failures == 1:
            wait_s = 0.0
        instance.retry_at = loop.time() + wait_s
        self._problem = problem
        told = problem if last_words is None else f"{problem}; it said: {last_words}"
        if self.last_error != told:
            self._watcher.tell(f"it failed: {told}")
        self.last_error = told
        # What it offers is not known before its first start, and an eager one is wanted at all times.
        is_wanted = instance.owner is None and self.declared.start == "eager"
        if (is_wanted or not self.has_offered) and not self._is_closed:
            instance.again = loop.call_later(wait_s, self._try_again, instance)

    def _try_again(self, instance: Instance) -> None:
        instance.again = None
        if self._is_closed or instance.connection is not None or instance.starting is not None:
            return
        self.restarts += 1
        instance.starting = asyncio.get_running_loop().create_task(self._start(instance))
        instance.starting.add_done_callback(_retrieved)

    # -- ends

    def _lost(self, instance: Instance, connection: UpstreamConnection, problem: str) -> None:
        if instance.connection is not connection:  # it never began, or was stopped by us
            return
        instance.connection = None
        self._close(connection)
        self._watcher.ended(instance)
        now = asyncio.get_running_loop().time()
        if now - instance.began_at > _SETTLED_S:
            instance.failures = 0
        self.restarts += 1
        self._failed(instance, problem, connection.link.last_words, was_ready=True)

    def _close(self, connection: UpstreamConnection) -> asyncio.Task[None]:
        """Begin to close a connection: it goes on even if whoever waits for that is cancelled."""
        self._subscriptions.leave(connection, self._instances.connection())
        return self._close_later(connection.close())

    def _close_later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        closing = asyncio.get_running_loop().create_task(work)
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return closing

    async def _stop_all(self) -> None:
        for instance in self._instances:
            starting = instance.starting
            self._stop(instance)
            if starting is not None:
                await asyncio.wait((starting,))
        if self._closing:
            await asyncio.wait(tuple(self._closing))

    def _stop(self, instance: Instance) -> None:
        """End a process, and forget it; whoever needs it next gets a new one."""
        self._instances.drop(instance)
        instance.cancel_timers()
        if instance.starting is not None:
            instance.starting.cancel()
        if instance.lists is not None:
            self._close_later(instance.lists.close())
        connection, instance.connection = instance.connection, None
        if connection is not None:
            self._close(connection)
        self._watcher.ended(instance)

    def _watch_idle(self, instance: Instance) -> None:
        idle_s = self.declared.idle_s
        if self.declared.isolation == "session" and instance.owner is None:
            # It has said what the server offers, and belongs to nobody.
            asyncio.get_running_loop().call_soon(self._stop, instance)
        elif idle_s and (self.declared.start == "lazy" or instance.owner is not None):
            loop = asyncio.get_running_loop()
            instance.idle = loop.call_later(idle_s, self._end_if_idle, instance)

    def _end_if_idle(self, instance: Instance) -> None:
        connection, loop = instance.connection, asyncio.get_running_loop()
        if connection is None:
            return
        left_s = instance.used_at + self.declared.idle_s - loop.time()
        if connection.is_busy or self._subscriptions.need(connection) or left_s > 0:
            instance.idle = loop.call_later(max(left_s, 1.0), self._end_if_idle, instance)
        else:
            self._stop(instance)

    # -- changes

    def _changed(self, instance: Instance, method: str, params: JSONObject) -> None:
        uri = params.get("uri")
        if method.endswith("resources/updated"):
            if isinstance(uri, str):
                self._watcher.updated(uri)
            return
        if instance.lists is None:
            instance.lists = ChangedLists(partial(self._observe_again, instance))
        instance.lists.announce(method)

    async def _observe_again(self, instance: Instance, announced: frozenset[str]) -> None:
        connection = instance.connection
        if connection is None:  # the next one says what it offers when it begins
            return
        try:
            offer = await observe(self.declared.alias, connection, self.declared.timeout_ms / 1000)
        except (ConnectionLost, NotSent, RpcError, BadAnswer, TimeoutError, TooMany) as error:
            self._watcher.tell(
                f"its changed list could not be read: {words_of(error, connection, self.declared)}"
            )
        else:
            await self._watcher.offered(instance, offer, announced)

    def _troubled(self, problem: str | None) -> None:
        if problem is not None and problem != self.last_error:
            self._watcher.tell(problem)
        self.last_error = problem

    def _note_oddity(self, problem: str) -> None:
        self._odd += 1
        # The first of each power of ten: a server that floods us says it once, and again much later.
        if str(self._odd).strip("0") == "1":
            self._watcher.tell(f"{problem} (messages dropped so far: {self._odd})")


def _retrieved(task: asyncio.Task[UpstreamConnection]) -> None:
    if not task.cancelled():
        task.exception()
