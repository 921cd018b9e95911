"""One connection's messages: what was agreed on it, and in what order they are answered.

Messages of the envelope and bare dialects are answered in turn, and so are unreadable ones. MCP requests run
concurrently, except that everything after an `initialize` waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from portbook.canonical import fingerprint, json_bytes
from portbook.dialects.dialect_choice import DialectName, choose_dialect
from portbook.errors import Reason, Refused
from portbook.exception_place import place_of
from portbook.mcp.client_subscriptions import ClientSubscriptions
from portbook.mcp.connection_parts import Parts
from portbook.mcp.dialect import ServedMethod
from portbook.mcp.exchange import REQUEST_MEMBERS, CallForm, ClientLink, McpExchange
from portbook.mcp.messages_from_client import (
    Cancel,
    Key,
    Order,
    Work,
    answer_unread,
    key_of,
    take_notification,
    unread,
)
from portbook.mcp.method_handlers import LISTEN
from portbook.mcp.questions_to_client import ClientRequests, LiveClient
from portbook.mcp.report_queue import Emit
from portbook.mcp.task_methods import RESULT_OF_TASK, asked_by, attend_task, created, task_of
from portbook.mcp.task_runner import TaskRunner
from portbook.model import JSON, Answer, Arrival, Completed, Done, JSONObject
from portbook.protocol.negotiation import Session
from portbook.stages.state import CallState
from portbook.wire.jsonrpc import NO_ID, Id, nobody_waits, not_an_object, read_id, result_frame
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame
from portbook.wire.parsing import NOT_TIGHT, parse_strictly, parse_tight

if TYPE_CHECKING:
    from portbook.mcp.batches import Batches
    from portbook.mcp.list_and_resource_changes import ChangeNotification
    from portbook.mcp.node_mail_and_relay import SessionRelay
    from portbook.mcp.task_board import Task, TasksElsewhere

__all__ = ["McpConnection"]

# Running requests of one connection; further ones are refused as busy.
_MAX_RUNNING: Final = 1024

# Integers from here on may be too long for an id.
_LONG_ID: Final = 1 << 63

# Taken from here by name: to find a member of an enumeration takes longer than to compare it.
_MCP: Final = DialectName.MCP

# Requests about tasks that are answered at once.
_OF_TASKS: Final = frozenset({"tasks/get", "tasks/list", "tasks/update", "tasks/cancel"})

# Requests that are answered without knowledge of a single tool.
_KNOWS_NO_ENTRY: Final = frozenset({"initialize", "ping", "logging/setLevel"})


class McpConnection:
    """What one connection has agreed on, and which of its requests are running."""

    def __init__(
        self,
        parts: Parts,
        arrival: Arrival,
        emit: Emit,
        *,
        is_official: bool = False,
        is_stateless: bool = False,
        session: Session | None = None,
        cancel: Cancel = lambda _: False,
        relay: SessionRelay | None = None,
    ) -> None:
        """Open a connection, or continue `session`; where `is_official`, every message is MCP.

        Where it `is_stateless`, each message names a revision without a handshake: nothing is remembered of
        it, and one connection serves all of them, whoever sent them. With a `relay`, other nodes run calls of
        the same session, and tell it of changes.
        """
        self._parts = parts
        self._pipeline = parts.pipeline
        self._official = parts.official
        self._arrival = arrival
        self._emit = emit
        self._cancel = cancel
        self._is_official = is_official
        self._is_stateless = is_stateless
        self._speaks_mcp = is_official or session is not None
        """Whether an unreadable message is answered as MCP: by its route, or by earlier messages."""
        self.session = session or Session()
        self._methods: Mapping[str, ServedMethod] = {}
        """The methods of the session's revision that were served before."""
        self._running: set[Key] = set()
        self._asset_tools = parts.asset_tools
        self._servers = parts.servers
        self._tools = parts.official.tools
        self._forms: dict[str, CallForm] = {}
        """The forms of calls that were read, by the names of their tools."""
        self._batches: Batches | None = None
        self._relay = relay
        self._client_requests = ClientRequests(
            parts.official.notifications, emit, None if relay is None else relay.node
        )
        self._link = ClientLink(self.session, self._client_requests, emit)
        self._subscriptions = ClientSubscriptions(
            parts, self.session, arrival, emit, is_notified=relay is None
        )
        self._find_methods()

    def receive(
        self,
        frame: Frame,
        arrival: Arrival | None = None,
        emit: Emit | None = None,
        let_go: Callable[[], None] | None = None,
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
        message, tight_bytes = parse_tight(frame), len(frame)
        if message is NOT_TIGHT:
            tight_bytes = 0
            try:
                message = parse_strictly(frame)
            except Refused as refusal:
                return Work(self._refuse(frame, refusal, arrival))
        link = self._link
        if emit is not None or let_go is not None or not reaches_client:
            link = ClientLink(self.session, self._client_requests, emit or self._emit, let_go, reaches_client)
        if type(message) is dict:
            key = message.get("id")
            # Most ids are positive integers, which have one spelling.
            identifier = b"%d" % key if type(key) is int and 0 < key < _LONG_ID else read_id(message, frame)
            return self._receive_one(message, identifier, arrival, link, tight_bytes)
        revision = self.session.revision
        if isinstance(message, list) and revision is not None and revision.has_batches:
            return Work(self._opened_batches().answer(message, arrival, link), Order.AT_ONCE)
        return Work(self._refuse(message, not_an_object(message), arrival))

    def move_to(self, parts: Parts) -> None:
        """Answer what comes next with `parts`; requests that run end where they began."""
        self._parts = parts
        self._pipeline = parts.pipeline
        self._official = parts.official
        self._asset_tools = parts.asset_tools
        self._servers = parts.servers
        self._tools = parts.official.tools
        self._forms.clear()
        self._subscriptions.move_to(parts)
        self._find_methods()

    async def settle(self, answer: JSONObject) -> None:
        """Accept an answer that the client gave to a different node; record one that answers nothing."""
        if not self._client_requests.settle(answer):
            arrival = replace(self._arrival, traceparent=None)
            await self._ignore(answer, read_id(answer, json_bytes(answer)), arrival, self._link)

    def cancel(self, key: Key) -> bool:
        """Cancel a request that this node runs; return whether it does."""
        return self._cancel(key) or (self._batches is not None and self._batches.cancel(key))

    def adopt(self, state: JSONObject) -> None:
        """Take over the log level and the subscriptions that a different process has stored."""
        self.session.adopt(state)
        self._subscriptions.renew()

    def told_of(self, change: ChangeNotification) -> bytes | None:
        """Return the notification of a change; None where the client is not told of it."""
        return self._subscriptions.told_of(change)

    def close(self) -> None:
        """End everything that waits for the client: it has disconnected."""
        self.fail_questions()
        self.unsubscribe()

    def unsubscribe(self) -> None:
        """Tell the client of no more changes."""
        self._subscriptions.close()

    def fail_questions(self) -> None:
        """Give up what was asked of the client and is not answered."""
        self._client_requests.close()

    def _receive_one(
        self, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink, tight_bytes: int = 0
    ) -> CallState | Work:
        if tight_bytes and self._forms and len(message) == REQUEST_MEMBERS:
            # A client calls the same tool again and again: only the id and the arguments of a call are new.
            members: Any = message
            try:
                params, key = members["params"], members["id"]
                form, arguments = self._forms[params["name"]], params["arguments"]
                exchange = None
                if self._tools.get(form.name) is form.tool:
                    exchange = form.read(message, params, arguments, tight_bytes, identifier, arrival, link)
                else:  # it is no longer served, or changed
                    del self._forms[params["name"]]
            except Exception:  # noqa: BLE001 - the first call, or none; what is wrong with it is found below
                return self._receive_new(message, identifier, arrival, link, tight_bytes)
            if exchange:
                return self._take_request(exchange, key) if self._running else self._answer(exchange, key)
        return self._receive_new(message, identifier, arrival, link, tight_bytes)

    def _receive_new(
        self, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink, tight_bytes: int
    ) -> CallState | Work:
        """Take a message of which nothing is known yet."""
        method, params = message.get("method"), message.get("params")
        served = self._methods.get(method) if type(method) is str else None
        # A method that was served before is MCP, whatever else the message says but `tool`.
        if (served is None or (type(params) is dict and "tool" in params)) and not self._is_official:
            chosen = choose_dialect(message, self._asset_tools, self.session.revision is not None)
            if chosen is not _MCP:
                begun = self._parts.answer_alone(message, identifier, arrival, chosen)
                return begun if isinstance(begun, CallState) else Work(begun)
        self._speaks_mcp = True
        servers = self._servers
        if servers is not None and not servers.is_settled and _needs_servers(message):
            answering = self._answer_after(servers.settle, message, identifier, arrival, link)
            return Work(answering, Order.AT_ONCE, key_of(message.get("id")), method == RESULT_OF_TASK)
        if (
            method is None
            and "method" not in message
            and (settling := self._take_response(message, identifier, arrival, link))
        ):
            return settling
        try:
            exchange = self._official.read(
                message, method, params, served, identifier, arrival, link, tight_bytes
            )
        except Exception as error:  # noqa: BLE001 - a bug of ours is recorded and answered, here too
            flaw = Refused(Reason.INTERNAL, note=place_of(error))
            return Work(self._refuse(message, flaw, arrival, identifier))
        flaw = exchange.call.flaw
        key: Any = message.get("id")
        if servers is not None and (late := servers.late_servers_of(exchange.call)) is not None:
            answering = self._answer_after(late, message, identifier, arrival, link)
            return Work(answering, Order.AT_ONCE, key_of(key))
        if flaw is None and key is not None:  # of a type that the schema allows
            return self._take_sound(exchange, key, message, served, tight_bytes)
        if flaw is not None and self._is_unclaimed(message):
            exchange.call = unread(message, arrival, flaw)
        if nobody_waits(message):
            heeding = take_notification(self._pipeline, exchange, message, self.session, self._cancel_any)
            return Work(heeding)
        return self._answer(exchange, None)

    def _take_sound(
        self,
        exchange: McpExchange,
        key: Any,
        message: JSONObject,
        served: ServedMethod | None,
        tight_bytes: int,
    ) -> CallState | Work:
        """Answer a valid request, and keep its form for the next one like it."""
        # Nothing is asked of a call beside which none runs, in a revision that has no tasks of its own.
        is_plain = exchange.handler is None and exchange.revision.has_handshake
        if self._running or not is_plain or "task" in exchange.params:
            return self._take_request(exchange, key)
        self._keep_form(exchange, message, served, tight_bytes)
        return self._answer(exchange, key)

    def _keep_form(
        self, exchange: McpExchange, message: JSONObject, served: ServedMethod | None, tight_bytes: int
    ) -> None:
        """Keep the form of a call, where it has one, for the next call of its tool."""
        tool = self._tools.get(exchange.call.tool or "") if tight_bytes else None
        if tool is None or served is None:
            return
        form = CallForm.of(exchange, tool, served.is_sound, message, tight_bytes)
        if form is not None:
            self._forms[form.name] = form

    def _take_response(
        self, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink
    ) -> Work | None:
        """Take a response to a question of this node or a different one; None where it answers none."""
        if self._client_requests.settle(message):
            return Work(_nothing())
        asker = None if self._relay is None else self._relay.asker_of(message)
        return None if asker is None else Work(self._hand_over(asker, message, identifier, arrival, link))

    async def _hand_over(
        self, asker: str, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink
    ) -> Answer:
        """Hand an answer to the node that asked; record one that cannot be handed over."""
        assert self._relay is not None
        if await self._relay.answer(asker, message):
            return await _nothing()
        return await self._ignore(message, identifier, arrival, link)

    async def _ignore(
        self, message: JSONObject, identifier: Id, arrival: Arrival, link: ClientLink
    ) -> Answer:
        """Record that a response answers nothing."""
        exchange = self._official.read(message, None, None, None, identifier, arrival, link, 0)
        return await take_notification(self._pipeline, exchange, message, self.session, self._cancel_any)

    async def _answer_after(
        self,
        settle: Callable[[], Coroutine[Any, Any, object]],
        message: JSONObject,
        identifier: Id,
        arrival: Arrival,
        link: ClientLink,
    ) -> Answer:
        """Answer a request once servers behind us have said what they offer."""
        await settle()
        begun = self._receive_one(message, identifier, arrival, link)
        return begun.reply() if isinstance(begun, CallState) else await begun.answering

    def _take_request(self, exchange: McpExchange, key: Key) -> CallState | Work:
        """Answer a valid request."""
        running = self._running
        is_concurrent = key in running or len(running) >= _MAX_RUNNING or exchange.method == LISTEN
        if is_concurrent and not self._is_stateless:
            flaw = self._refuse_concurrent(exchange, key)
            if flaw is not None:
                exchange.call = replace(exchange.call, flaw=flaw)
                return self._answer(exchange, None)
        if exchange.handler is not None:
            return self._take_question(exchange, key)
        is_detachable = not exchange.revision.has_handshake and exchange.may_detach
        if is_detachable or ("task" in exchange.params and exchange.wants_task):
            return Work(self._answer_or_detach(exchange, key), Order.AT_ONCE, key)
        return self._answer(exchange, key)

    def _take_question(self, exchange: McpExchange, key: Key) -> CallState | Work:
        """Answer a valid request that runs no tool."""
        method = exchange.method
        elsewhere = self._parts.tasks.elsewhere
        if method in _OF_TASKS and elsewhere is not None:
            return Work(self._answer_about_tasks(exchange, key, elsewhere), Order.AT_ONCE, key)
        if method == LISTEN:
            return Work(self._answer_subscription(exchange, key), Order.AT_ONCE, key)
        if method == "initialize":
            return self._initialize(exchange)
        if method == RESULT_OF_TASK:
            return Work(self._answer_task_result(exchange, key), Order.AT_ONCE, key, only_waits=True)
        if method == "resources/subscribe":
            self._subscriptions.govern(exchange)
        elif method == "resources/unsubscribe":
            self._subscriptions.unwatch_with(exchange)
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
        if is_subscription and self._subscriptions.is_full:
            return Refused(Reason.TOO_MANY_STREAMS)
        is_full = len(self._running) >= _MAX_RUNNING
        if is_full and (is_subscription or exchange.handler is None):
            return Refused(Reason.TOO_MANY_IN_FLIGHT)
        return None

    def _answer(self, exchange: McpExchange, key: Key | None) -> CallState | Work:
        """Answer a request; without a key, it is answered in turn."""
        begun = self._pipeline.begin(exchange)
        if type(begun) is not CallState:
            begun = cast("Coroutine[Any, Any, CallState]", begun)
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
        if key is not None and not self._is_stateless:
            self._running.add(key)

    def _end(self, exchange: McpExchange, key: Key | None) -> None:
        exchange.close()
        self._running.discard(cast("Key", key))

    def _initialize(self, exchange: McpExchange) -> CallState | Work:
        begun = self._answer(exchange, None)
        self._flush()  # without a record there is no agreement
        if isinstance(begun, CallState) and isinstance(begun.outcome, Done):
            self._agree(exchange)
        return begun

    def _agree(self, exchange: McpExchange) -> None:
        capabilities = exchange.params.get("capabilities")
        self.session.agree(exchange.revision, capabilities if isinstance(capabilities, dict) else {})
        self._find_methods()
        self._subscriptions.begin()

    def _find_methods(self) -> None:
        if self.session.revision is not None:
            self._methods = self._official.methods_of(self.session.revision)

    async def _answer_subscription(self, exchange: McpExchange, key: Key) -> Answer:
        self._start(key)
        try:
            fetched = await self._fetched_tasks(exchange)
            ended = await self._subscriptions.hold(exchange, _bound(exchange))
            del fetched  # held until here, for what was fetched is found only while it is
            return ended
        finally:
            self._end(exchange, key)

    async def _answer_about_tasks(self, exchange: McpExchange, key: Key, elsewhere: TasksElsewhere) -> Answer:
        """Answer a request about tasks that a different node may run."""
        fetched = await self._fetched_tasks(exchange)
        begun = self._answer(exchange, key)
        answer = begun.reply() if isinstance(begun, CallState) else await begun.answering
        del fetched
        await elsewhere.settle()
        return answer

    async def _fetched_tasks(self, exchange: McpExchange) -> list[Task]:
        """Return the tasks of other nodes that a request is about; they are found while somebody has them."""
        elsewhere = self._parts.tasks.elsewhere
        if elsewhere is None:
            return []
        if exchange.method == "tasks/list":
            return await elsewhere.fetch_all(_bound(exchange))
        ids = _tasks_in(exchange.params)
        return await elsewhere.fetch(ids, _bound(exchange)) if ids else []

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
        if self._parts.tasks.elsewhere is not None:
            await self._parts.tasks.elsewhere.publish(ended)
        state = created(ended.state())
        told: JSONObject = {"task": task_of(state)} if exchange.wants_task else state
        return Answer(result_frame(exchange.identifier, json_bytes(told)), 200)

    async def _answer_task_result(self, exchange: McpExchange, key: Key) -> Answer:
        """Answer with the result of a task when it has one; it may ask its client meanwhile."""
        fetched = await self._fetched_tasks(exchange)
        task = self._parts.tasks.find(str(exchange.params["taskId"]), _bound(exchange))
        client = exchange.client()
        self._start(key)
        try:
            if task is not None and isinstance(client, LiveClient):
                await attend_task(task, client)
            completed = await self._pipeline.run(exchange)
        finally:
            self._end(exchange, key)
        del fetched
        return exchange.write(completed)

    def _flush(self) -> None:
        self._pipeline.recorder.flush()

    def _opened_batches(self) -> Batches:
        if self._batches is None:
            from portbook.mcp.batches import Batches, SingleMessages  # late: one revision has batches

            single = SingleMessages(self._receive_one, self._refuse, self._flush)
            self._batches = Batches(single)
        return self._batches

    def _cancel_any(self, key: Key) -> bool:
        return self.cancel(key) or (self._relay is not None and self._relay.cancel(key))

    def _refuse(
        self, content: JSON | bytes, refusal: Refused, arrival: Arrival, identifier: Id = NO_ID
    ) -> Coroutine[Any, Any, Answer]:
        """Record and answer an unreadable message."""
        call, revision = unread(content, arrival, refusal), self.session.revision
        return answer_unread(self._pipeline, call, identifier, revision, is_mcp=self._speaks_mcp)


def _needs_servers(message: JSONObject) -> bool:
    method = message.get("method")
    return isinstance(method, str) and "id" in message and method not in _KNOWS_NO_ENTRY


def _bound(exchange: McpExchange) -> str:
    bound = fingerprint(exchange.call.arrival.key)
    return asked_by(bound) if exchange.revision.has_task_requests else bound


def _tasks_in(params: JSONObject) -> list[str]:
    """Return the ids of the tasks that a request is about, or wants to hear of."""
    subscribed = params.get("notifications")
    ids = subscribed.get("taskIds") if isinstance(subscribed, dict) else [params.get("taskId")]
    return [each for each in ids if isinstance(each, str)] if isinstance(ids, list) else []


async def _nothing() -> Answer:
    return Answer(None, 202, is_notification=True)
