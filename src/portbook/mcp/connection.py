"""One connection's messages: what was agreed on it, and in what order they are answered.

Messages of the envelope and bare dialects are answered in turn, and so are unreadable ones. MCP requests run
concurrently, except that everything after an `initialize` waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import replace
from enum import Enum
from typing import Any, Final, Protocol, cast

from portbook.canonical import fingerprint, json_bytes
from portbook.dialects.choice import DialectName, choose_dialect
from portbook.dialects.exchange import Exchange
from portbook.errors import Ending, Finding, Reason, Refused
from portbook.exception_place import place_of
from portbook.mcp.batch_members import MAX_BATCH, BatchMembers
from portbook.mcp.client_requests import ClientRequests
from portbook.mcp.dialect import McpDialect
from portbook.mcp.exchange import ClientLink, McpExchange, write_error
from portbook.mcp.handlers import LISTEN
from portbook.mcp.list_and_resource_changes import ChangeFeed, ChangeNotification, Subscriber
from portbook.mcp.outlet import Emit
from portbook.mcp.subscription_streams import Subscription, wanted_resources
from portbook.mcp.task_board import TaskBoard
from portbook.mcp.task_methods import created
from portbook.mcp.task_runner import TaskRunner
from portbook.model import (
    JSON,
    Answer,
    Arrival,
    Call,
    Caller,
    CallerContext,
    Completed,
    Done,
    JSONObject,
)
from portbook.pipeline import Pipeline
from portbook.protocol.session import Session
from portbook.stages.state import CallState
from portbook.text.named_tuple import NamedTuple
from portbook.wire.jsonrpc import (
    NO_ID,
    Id,
    nobody_waits,
    not_an_object,
    read_id,
    refusal_frame,
    result_frame,
)
from portbook.wire.lines import OVERSIZE, Frame
from portbook.wire.parsing import parse
from portbook.wire.trace_context import trace_of

__all__ = ["Cancel", "Emit", "Key", "McpConnection", "Order", "Parts", "Servers", "Work", "unread"]

# Running requests of one connection; further ones are refused as busy.
_MAX_RUNNING: Final = 1024

# Subscriptions that one connection can hold open: each is notified of every change.
_MAX_SUBSCRIPTIONS: Final = 64

# Identifies a request of a connection: 1 and "1" are different ids, 1 and 1.0 are not.
Key = str | int | float

# Cancels a running request, and says whether there was one. A door does it, which knows its tasks.
Cancel = Callable[[Key], bool]

# Taken from here by name: to find a member of an enumeration takes longer than to compare it.
_MCP: Final = DialectName.MCP

_CANCELLED: Final = "notifications/cancelled"

# Notifications that are heeded on a connection with an agreed revision: nothing is left to do for them.
_HEEDED: Final = frozenset({"notifications/initialized", "notifications/roots/list_changed"})

# Requests that are answered without knowledge of a single tool.
_KNOWS_NO_ENTRY: Final = frozenset({"initialize", "ping", "logging/setLevel"})

# Flaws of notifications that are no mistake of the client: they are accepted, without effect.
_HARMLESS: Final = frozenset({Reason.UNKNOWN_METHOD, Reason.IGNORED})


class Order(Enum):
    """When a message may be answered."""

    IN_TURN = "in turn"
    AT_ONCE = "at once"


class Work(NamedTuple):
    """What a door has to do for a frame that may wait: run a coroutine, in turn or beside the next ones.

    It steps the coroutine at once, up to its first wait.
    """

    answering: Coroutine[Any, Any, Answer]
    order: Order = Order.IN_TURN
    key: Key | None = None


class Servers(Protocol):
    """The MCP servers behind the boundary: what they offer has to be known before a call can be read."""

    @property
    def is_settled(self) -> bool:
        """Return whether it is known."""
        ...

    async def settle(self) -> None:
        """Wait until it is."""
        ...

    def end_session(self, session: str) -> None:
        """End what only a session had, which has ended."""
        ...

    def watch(self, uri: str) -> Callable[[], None]:
        """Hear of changes of a resource while one of them offers it; return the function that stops it."""
        ...


class Parts(NamedTuple):
    """What all connections of a boundary share."""

    pipeline: Pipeline
    official: McpDialect
    asset_tools: frozenset[str]
    """The names of the tools that are called by their names alone."""
    answer_alone: Callable[
        [JSONObject, Id, Arrival, DialectName | None], CallState | Coroutine[Any, Any, Answer]
    ]
    """Answers a message that is not MCP."""
    tasks: TaskBoard
    changes: ChangeFeed
    servers: Servers | None = None


class McpConnection:
    """What one connection has agreed on, and which of its requests are running."""

    def __init__(
        self,
        parts: Parts,
        arrival: Arrival,
        emit: Emit,
        *,
        is_official: bool = False,
        session: Session | None = None,
        cancel: Cancel = lambda _: False,
    ) -> None:
        """Open a connection, or continue `session`; where `is_official`, every message is MCP."""
        self._parts = parts
        self._pipeline = parts.pipeline
        self._official = parts.official
        self._arrival = arrival
        self._emit = emit
        self._cancel = cancel
        self._is_official = is_official
        self._speaks_mcp = is_official or session is not None
        """Whether an unreadable message is answered as MCP: by its route, or by earlier messages."""
        self.session = session or Session()
        self._running: set[Key] = set()
        self._asset_tools = parts.asset_tools
        self._servers = parts.servers
        self._members: BatchMembers | None = None
        self._client_requests = ClientRequests(parts.official.notifications)
        self._link = ClientLink(self.session, self._client_requests, emit)
        self._closing: list[Callable[[], None]] = []
        self._subscriptions = 0
        self._subscriber: Subscriber | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._watching: dict[str, Callable[[], None]] = {}
        if self.session.revision is not None:
            self._unsubscribe = parts.changes.subscribe(self._notify)
            for uri in self.session.watched:
                self._watch(uri)

    def receive(
        self,
        frame: Frame,
        arrival: Arrival | None = None,
        emit: Emit | None = None,
        let_go: Callable[[], None] | None = None,
        *,
        reaches_client: bool = True,
    ) -> CallState | Work:
        """Return the call of one frame, which has ended, or what a door has to do for it.

        Raises nothing that a frame could cause.

        `arrival` and `emit` are those of the frame, where each message has its own request and response;
        `reaches_client` tells whether the client gets what is emitted before the answer.
        """
        if arrival is None:
            arrival = self._arrival
        if frame is OVERSIZE:
            return Work(self._refuse(b"", Refused(Reason.FRAME_TOO_LARGE), arrival))
        try:
            message = parse(frame)
        except Refused as refusal:
            return Work(self._refuse(frame, refusal, arrival))
        link = self._link
        if emit is not None or let_go is not None or not reaches_client:
            link = ClientLink(self.session, self._client_requests, emit or self._emit, let_go, reaches_client)
        if type(message) is dict:
            return self._receive_one(message, read_id(message, frame), arrival, link)
        revision = self.session.revision
        if isinstance(message, list) and revision is not None and revision.has_batches:
            return Work(self._answer_batch(message, arrival, link), Order.AT_ONCE)
        return Work(self._refuse(message, not_an_object(message), arrival))

    def move_to(self, parts: Parts) -> None:
        """Answer what comes next with `parts`; requests that run end where they began."""
        self._parts = parts
        self._pipeline = parts.pipeline
        self._official = parts.official
        self._asset_tools = parts.asset_tools
        self._servers = parts.servers
        self._subscriber = Subscriber(parts.pipeline, self._arrival)
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = parts.changes.subscribe(self._notify)

    def close(self) -> None:
        """End everything that waits for the client: it has disconnected."""
        self._client_requests.close()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for uri in tuple(self._watching):
            self._unwatch(uri)
        for close in tuple(self._closing):
            close()

    def _receive_one(
        self, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink
    ) -> CallState | Work:
        if not self._is_official:
            chosen = choose_dialect(message, self._asset_tools, self.session.revision is not None)
            if chosen is not _MCP:
                begun = self._parts.answer_alone(message, identifier, arrival, chosen)
                return begun if isinstance(begun, CallState) else Work(begun)
        self._speaks_mcp = True
        servers = self._servers
        if servers is not None and not servers.is_settled and _needs_servers(message):
            answering = self._answer_settled(servers, message, identifier, arrival, link)
            return Work(answering, Order.AT_ONCE, _key(message.get("id")))
        if "method" not in message and self._client_requests.settle(message):
            return Work(_nothing())
        try:
            exchange = self._official.read(message, identifier, arrival, link)
        except Exception as error:  # noqa: BLE001 - a bug of ours is recorded and answered, here too
            flaw = Refused(Reason.INTERNAL, note=place_of(error))
            return Work(self._refuse(message, flaw, arrival, identifier))
        flaw, key = exchange.call.flaw, message.get("id")
        if flaw is None and key is not None:
            return self._take_request(exchange, cast("Key", key))  # as the schema requires
        if flaw is not None and self._is_unclaimed(message):
            exchange.call = unread(message, arrival, flaw)
        if nobody_waits(message):
            return Work(self._take_notification(message, exchange))
        return self._answer(exchange, None)

    async def _answer_settled(
        self, servers: Servers, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink
    ) -> Answer:
        """Answer a request once the servers behind us have said what they offer."""
        await servers.settle()
        begun = self._receive_one(message, identifier, arrival, link)
        return begun.reply() if isinstance(begun, CallState) else await begun.answering

    def _take_request(self, exchange: McpExchange, key: Key) -> CallState | Work:
        """Answer a valid request."""
        running = self._running
        if key in running or len(running) >= _MAX_RUNNING or exchange.method == LISTEN:
            flaw = self._refuse_concurrent(exchange, key)
            if flaw is not None:
                exchange.call = replace(exchange.call, flaw=flaw)
                return self._answer(exchange, None)
        if exchange.handler is not None:
            return self._take_question(exchange, key)
        if not exchange.revision.has_handshake and exchange.may_detach:
            return Work(self._answer_or_detach(exchange, key), Order.AT_ONCE, key)
        return self._answer(exchange, key)

    def _take_question(self, exchange: McpExchange, key: Key) -> CallState | Work:
        """Answer a valid request that runs no tool."""
        method = exchange.method
        if method == LISTEN:
            return Work(self._answer_subscription(exchange, key), Order.AT_ONCE, key)
        if method == "initialize":
            return self._initialize(exchange)
        if method == "resources/subscribe":
            self._put_under_policy(exchange)
        elif method == "resources/unsubscribe":
            self._unwatch_with(exchange)
        return self._answer(exchange, key)

    def _is_unclaimed(self, message: JSONObject) -> bool:
        """Return whether nothing says that `message` is MCP: its record is then as at every other door."""
        return self.session.revision is None and not isinstance(message.get("method"), str)

    def _refuse_concurrent(self, exchange: McpExchange, key: Key | None) -> Refused | None:
        """Return why a request may not run beside those that are running."""
        if key in self._running:
            return Refused(Reason.ID_IN_USE)
        # Refused, not delayed: a door that stops reading would not receive a cancellation either.
        is_subscription = exchange.method == LISTEN
        if is_subscription and self._subscriptions >= _MAX_SUBSCRIPTIONS:
            return Refused(Reason.TOO_MANY_STREAMS)
        is_full = len(self._running) >= _MAX_RUNNING
        if is_full and (is_subscription or exchange.handler is None):
            return Refused(Reason.TOO_MANY_IN_FLIGHT)
        return None

    def _put_under_policy(self, exchange: McpExchange) -> None:
        """Refuse a subscription to a resource wherever reading the resource would be refused."""
        call, handler = exchange.call, exchange.handler
        assert handler is not None
        subscriber = Subscriber(self._pipeline, call.arrival, call.context.session)

        def watch(caller: Caller) -> JSON:
            refusal = subscriber.refuse(cast("str", exchange.params["uri"]), caller)
            if refusal is not None:
                raise refusal
            self._subscriber = subscriber
            told = handler(caller)
            self._watch(cast("str", exchange.params["uri"]))
            return told

        exchange.handler = watch

    def _unwatch_with(self, exchange: McpExchange) -> None:
        """Unsubscribe at the server behind us, too."""
        handler = exchange.handler
        assert handler is not None

        def unwatch(caller: Caller) -> JSON:
            told = handler(caller)
            self._unwatch(cast("str", exchange.params["uri"]))
            return told

        exchange.handler = unwatch

    def _answer(self, exchange: McpExchange, key: Key | None) -> CallState | Work:
        """Answer a request; without a key, it is answered in turn."""
        begun = self._pipeline.begin(exchange)
        if not isinstance(begun, CallState):
            order = Order.IN_TURN if key is None else Order.AT_ONCE
            return Work(self._answer_later(exchange, key, begun), order, key)
        if exchange.outlet is None:
            exchange.is_over = True
        else:
            exchange.outlet.flush()
            exchange.close()
        return begun

    async def _answer_later(
        self, exchange: McpExchange, key: Key | None, running: Coroutine[Any, Any, CallState]
    ) -> Answer:
        self._start(key)
        try:
            state = await running
            exchange.send_reports()
        finally:
            self._end(exchange, key)
        return state.reply()

    def _start(self, key: Key | None) -> None:
        if key is not None:
            self._running.add(key)

    def _end(self, exchange: McpExchange, key: Key | None) -> None:
        exchange.close()
        self._running.discard(cast("Key", key))

    def _initialize(self, exchange: McpExchange) -> CallState | Work:
        begun = self._answer(exchange, None)
        self._pipeline.recorder.flush()  # without a record there is no agreement
        if isinstance(begun, CallState) and isinstance(begun.outcome, Done):
            self._agree(exchange)
        return begun

    def _agree(self, exchange: McpExchange) -> None:
        capabilities = exchange.params.get("capabilities")
        self.session.agree(exchange.revision, capabilities if isinstance(capabilities, dict) else {})
        self._unsubscribe = self._parts.changes.subscribe(self._notify)

    async def _answer_subscription(self, exchange: McpExchange, key: Key | None) -> Answer:
        """Hold a subscription open until the client cancels it, or the server ends."""
        parts, call, handler = self._parts, exchange.call, exchange.handler
        subscriber = Subscriber(self._pipeline, call.arrival, call.context.session)
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
        self._start(key)
        self._subscriptions += 1
        try:
            completed = await self._pipeline.run(exchange)
            if isinstance(completed.outcome, Done):
                notifications = parts.official.notifications
                subscription = Subscription(notifications, exchange, parts.changes, parts.tasks, subscriber)
                self._closing.append(subscription.close)
                try:
                    ending = await subscription.hold(uris, _bound(exchange))
                finally:
                    self._closing.remove(subscription.close)
                return Answer(
                    result_frame(exchange.identifier.token, ending), 200, identity=completed.identity
                )
        finally:
            stops.close()
            self._subscriptions -= 1
            self._end(exchange, key)
        return exchange.write(completed)

    def _watch(self, uri: str) -> None:
        """Let the server behind us that offers a resource tell of its changes."""
        if self._parts.servers is not None and uri not in self._watching:
            self._watching[uri] = self._parts.servers.watch(uri)

    def _unwatch(self, uri: str) -> None:
        stop = self._watching.pop(uri, None)
        if stop is not None:
            stop()

    async def _answer_or_detach(self, exchange: McpExchange, key: Key | None) -> Answer:
        """Answer a call when it has ended, or when it continues as a task."""
        runner = TaskRunner(self._parts.pipeline, self._parts.tasks)
        self._start(key)
        try:
            ended = await runner.run(exchange, _bound(exchange))
            exchange.send_reports()
        finally:
            self._end(exchange, key)
        if isinstance(ended, Completed):
            return exchange.write(ended)
        return Answer(result_frame(exchange.identifier.token, json_bytes(created(ended.state()))), 200)

    def _notify(self, change: ChangeNotification) -> None:
        """Notify the client of a change, if it has subscribed and may. From any thread."""
        revision, uri = self.session.revision, change.changed.uri
        if revision is None or (uri is not None and uri not in self.session.watched):
            return
        self._emit(change.message(self._official.notifications, revision), lambda: self._may_receive(uri))

    def _may_receive(self, uri: str | None) -> bool:
        subscriber = self._subscriber or Subscriber(self._pipeline, self._arrival)
        return subscriber.may_receive(uri)

    async def _take_notification(self, message: JSONObject, exchange: McpExchange) -> Answer:
        """Heed a notification, or record why it has no effect; none is ever answered.

        Over HTTP, a wrong one gets an error status; an unknown one, and one about nothing, does not.
        """
        flaw = exchange.call.flaw or self._heed(message, exchange.method)
        if flaw is None:
            return Answer(None, 202, is_notification=True)
        exchange.call = replace(exchange.call, flaw=flaw)
        completed = await self._pipeline.run(exchange)
        is_wrong = flaw.reason not in _HARMLESS and "method" in message
        return Answer(None, 400 if is_wrong else 202, is_notification=True, identity=completed.identity)

    def _heed(self, message: JSONObject, method: str) -> Refused | None:
        """Do what a valid notification asks for; return why it has no effect, if it has none."""
        if method in _HEEDED and self.session.revision is not None:
            return None
        pointer, told = "/method", "concerns nothing in progress"
        if method == _CANCELLED:
            params = message.get("params")
            key = _key(params.get("requestId")) if isinstance(params, dict) else None
            if key is not None and (self._cancel(key) or self._cancel_member(key)):
                return None
            pointer, told = "/params/requestId", "names no running request"
        return Refused(Reason.IGNORED, (Finding(pointer, told, "ignored", ""),))

    async def _answer_batch(self, messages: list[JSON], arrival: Arrival, link: ClientLink) -> Answer:
        """Answer the messages of a batch in one array; not at all if none of them expects an answer."""
        if not 0 < len(messages) <= MAX_BATCH:
            finding = Finding("", f"a batch must have 1 to {MAX_BATCH} messages", "maxItems", "")
            return await self._refuse(messages, Refused(Reason.NOT_JSONRPC, (finding,)), arrival)
        answers: list[bytes] = []
        for message in messages:
            if not isinstance(message, dict):
                answer = await self._refuse(message, not_an_object(message), arrival)
            else:
                identifier = read_id(message, json_bytes(message))
                answer = await self._answer_member(message, identifier, arrival, link)
            if answer is not None and answer.body is not None and not answer.is_notification:
                answers.append(answer.body)
        if not answers:
            return Answer(None, 202, is_notification=True)
        return Answer(b"[" + b",".join(answers) + b"]", 200)

    async def _answer_member(
        self, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink
    ) -> Answer | None:
        """Return the answer to a member of a batch; None if the client has cancelled it."""
        if message.get("method") == "initialize":
            finding = Finding("/method", "initialize cannot be part of a batch; send it alone", "batch", "")
            flaw = Refused(Reason.NOT_JSONRPC, (finding,))
            return await self._refuse(message, flaw, arrival, identifier)
        member = self._link._replace(emit=link.emit)
        work = self._receive_one(message, identifier, arrival, member)
        if isinstance(work, CallState):
            self._pipeline.recorder.flush()  # its answer is worded now, and leaves with those of the others
            return work.reply()
        if work.key is None:
            return await work.answering
        if self._members is None:
            self._members = BatchMembers()
        return await self._members.run(work.key, work.answering)

    def _cancel_member(self, key: Key) -> bool:
        return self._members is not None and self._members.cancel(key)

    async def _refuse(
        self, content: JSON | bytes, refusal: Refused, arrival: Arrival, identifier: Id = NO_ID
    ) -> Answer:
        """Record and answer an unreadable message."""
        completed = await self._pipeline.run(Exchange(unread(content, arrival, refusal)))
        ending = completed.outcome
        assert isinstance(ending, Ending)
        if self._speaks_mcp:
            body = write_error(ending, identifier, self.session.revision)
        else:
            body = refusal_frame(ending, identifier.token)
        return Answer(body, ending.row.http, identity=completed.identity)


def _needs_servers(message: JSONObject) -> bool:
    method = message.get("method")
    return isinstance(method, str) and "id" in message and method not in _KNOWS_NO_ENTRY


def _bound(exchange: McpExchange) -> str:
    return fingerprint(exchange.call.arrival.key)


async def _nothing() -> Answer:
    return Answer(None, 202, is_notification=True)


def _key(identifier: JSON) -> Key | None:
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float):
        return None
    return identifier


def unread(content: JSON | bytes, arrival: Arrival, flaw: Refused) -> Call:
    """Return what to record of an unreadable message: a call without a tool, with that flaw."""
    method = content.get("method") if isinstance(content, dict) else None
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name != "id"}
    return Call(
        arrival=arrival,
        method=method if isinstance(method, str) and len(method) <= 128 else None,
        tool=None,
        arguments={},
        input_bytes=0,
        context=CallerContext(),
        trace=trace_of(arrival.traceparent),
        content=content,
        flaw=flaw,
    )
