"""The boundary: one message in, one answer out. What every door calls.

    parse ▶ classify ▶ read ▶ the pipeline ▶ write

The same bytes get the same verdict through every door. It knows wire contracts and no transport.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from portbook.dialects.asset_messages import Bare, refusal_frame
from portbook.dialects.dialect_choice import DialectName, choose_dialect
from portbook.dialects.envelope_messages import METHOD, Envelope
from portbook.dialects.exchange_contract import (
    Dialect,
    Exchange,
    HeardExchange,
    Listener,
    MessageExchange,
    answer_of,
)
from portbook.dialects.rest_bodies import Rest, RestExchange, rest_answer
from portbook.errors import Ending, Reason, Refused
from portbook.exception_place import place_of
from portbook.mcp.connection import McpConnection
from portbook.mcp.connection_parts import Parts, Servers
from portbook.mcp.dialect import McpDialect
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.messages_from_client import Cancel, unread
from portbook.mcp.report_queue import Emit
from portbook.mcp.task_board import TaskBoard
from portbook.model import JSON, Answer, Arrival, Caller, Completed, Done, JSONObject
from portbook.pipeline import Pipeline
from portbook.policy import Policy
from portbook.protocol.negotiation import Session
from portbook.stages.state import CallState
from portbook.tools.catalog import Tool
from portbook.tools.tool_names import TOOL_PREFIX, slug_of
from portbook.wire.jsonrpc import (
    NO_ID,
    Id,
    mcp_refusal_frame,
    nobody_waits,
    not_an_object,
    read_id,
    refuse_structure,
)
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame
from portbook.wire.parsing import parse

if TYPE_CHECKING:
    from portbook.mcp.node_mail_and_relay import SessionRelay

__all__ = ["Begun", "Boundary", "Tell"]

# A call that has ended, whose record may still be held, or what returns the answer once it has.
Begun = CallState | Coroutine[Any, Any, Answer]

# Makes an answer from the tools that a caller may see and the policy in force.
Tell = Callable[[list[Tool], Policy], JSONObject]


class Boundary:
    """Answers messages of every wire contract."""

    __slots__ = (
        "_bare",
        "_dialects",
        "_envelope",
        "_parts",
        "_pipeline",
        "_rest",
        "_servers",
        "recorder",
    )

    def __init__(
        self,
        pipeline: Pipeline,
        envelope: Envelope,
        official: McpDialect,
        bare: Bare,
        rest: Rest,
        tasks: TaskBoard,
        changes: ChangeFeed,
        servers: Servers | None = None,
    ) -> None:
        """Answer with these parts; `servers` say what they offer before the first message is read."""
        self._pipeline = pipeline
        self.recorder = pipeline.recorder
        """Holds records while a door answers many messages at once."""
        self._envelope = envelope
        self._bare = bare
        self._rest = rest
        self._dialects: dict[DialectName | None, Dialect] = {
            DialectName.ENVELOPE: envelope,
            DialectName.BARE: bare,
        }
        self._servers = servers
        self._parts = Parts(pipeline, official, bare.tools, self._begin, tasks, changes, servers)

    async def answer(self, frame: Frame, arrival: Arrival) -> Answer:
        """Return the answer to one frame. Raises nothing that a message could cause."""
        begun = self.begin(frame, arrival)
        return begun.reply() if isinstance(begun, CallState) else await begun

    def begin(self, frame: Frame, arrival: Arrival) -> Begun:
        """Return the call of one frame, which has ended, or a coroutine that returns the answer.

        Raises nothing that a message could cause.
        """
        if frame is OVERSIZE:
            return self.refuse(Refused(Reason.FRAME_TOO_LARGE), arrival)
        try:
            message = parse(frame)
        except Refused as refusal:
            return self._refuse(frame, NO_ID, arrival, refusal)
        if not isinstance(message, dict):
            return self._refuse(message, NO_ID, arrival, not_an_object(message))
        chosen = choose_dialect(message, self._bare.tools)
        return self._begin(message, read_id(message, frame), arrival, chosen)

    def _begin(
        self, message: JSONObject, identifier: Id, arrival: Arrival, chosen: DialectName | None
    ) -> Begun:
        """Answer a message that needs no connection: an envelope, or the name of a tool.

        Return its call, which has ended, or a coroutine that returns the answer.
        """
        if self._servers is not None and not self._servers.is_settled:
            return self._begin_after(self._servers.settle, message, identifier, arrival, chosen)
        dialect = self._dialects.get(chosen)
        if dialect is not None:
            try:
                exchange = dialect.read(message, identifier, arrival)
            except Exception as error:  # noqa: BLE001 - a bug of ours is recorded and answered, here too
                call = unread(message, arrival, Refused(Reason.INTERNAL, note=place_of(error)))
                exchange = MessageExchange(call, dialect, identifier)
            late = None if self._servers is None else self._servers.late_servers_of(exchange.call)
            if late is not None:
                return self._begin_after(late, message, identifier, arrival, chosen)
            begun = self._pipeline.begin(exchange)
            return begun if isinstance(begun, CallState) else _answered(begun)
        refusal = refuse_structure(message, identifier) or Refused(Reason.UNKNOWN_METHOD)
        return self._refuse(message, identifier, arrival, refusal)

    async def _begin_after(
        self,
        settle: Callable[[], Coroutine[Any, Any, object]],
        message: JSONObject,
        identifier: Id,
        arrival: Arrival,
        chosen: DialectName | None,
    ) -> Answer:
        """Answer a message once MCP servers behind us have said what they offer."""
        await settle()
        begun = self._begin(message, identifier, arrival, chosen)
        return begun.reply() if isinstance(begun, CallState) else await begun

    async def settle(self) -> None:
        """Wait until the MCP servers behind us have said what they offer, once."""
        if self._servers is not None and not self._servers.is_settled:
            await self._servers.settle()

    def end_session(self, session: str) -> None:
        """End what only a session had at the MCP servers behind us; it has ended."""
        if self._servers is not None:
            self._servers.end_session(session)

    def without_secrets(self, text: str) -> str:
        """Return a text that a person wrote, redacted, as it may be stored and shown."""
        redactor = self._pipeline.rules.redactor
        return text if redactor is None else redactor.redact_text(text)

    @property
    def has_operator_key(self) -> bool:
        """Return whether approvals can be decided through a door."""
        return self._pipeline.rules.callers.has_operator_key

    def connect(
        self,
        arrival: Arrival,
        emit: Emit,
        *,
        is_official: bool = False,
        is_stateless: bool = False,
        session: Session | None = None,
        cancel: Cancel = lambda _: False,
        relay: SessionRelay | None = None,
    ) -> McpConnection:
        """Return a connection, which remembers what its client and this server agreed on.

        Where `is_official`, all of its messages are MCP; where it `is_stateless`, each of them stands alone,
        and any client may send the next; `session` is what was agreed on earlier. `cancel`
        ends a request that the client cancels, where the door can; `relay` reaches the nodes that run further
        requests of the same session.
        """
        return McpConnection(
            self._parts,
            arrival,
            emit,
            is_official=is_official,
            is_stateless=is_stateless,
            session=session,
            cancel=cancel,
            relay=relay,
        )

    def adopt(self, connection: McpConnection) -> None:
        """Answer the next messages of a connection that a boundary before this one opened."""
        connection.move_to(self._parts)

    def identify(self, key: str | None) -> Caller:
        """Return the caller whose key this is now.

        Raises `Refused` for a wrong key, `OSError` where the store of keys cannot be read.
        """
        return self._pipeline.rules.callers.identify(key)

    async def refuse(self, refusal: Refused, arrival: Arrival, *, is_mcp: bool = False) -> Answer:
        """Record and answer a request that a door refused unread; `is_mcp` where only MCP is spoken."""
        return await self._refuse(b"", NO_ID, arrival, refusal, is_mcp=is_mcp)

    async def tell(self, method: str, arrival: Arrival, make: Tell) -> Answer:
        """Answer a question about the boundary itself with what the caller may know, and record it."""
        await self.settle()
        pipeline = self._pipeline
        policy = pipeline.rules.policy
        question = self._rest.question(
            method, arrival, lambda caller: make(pipeline.visible_to(caller), policy)
        )
        completed = await pipeline.run(question)
        if isinstance(completed.outcome, Done):
            return answer_of(completed, completed.outcome.wire, 200)
        return rest_answer(completed)

    async def operate(
        self,
        method: str,
        arrival: Arrival,
        act: Callable[[], Awaitable[JSON]],
        approval: str | None = None,
        says: str | None = None,
        about: JSONObject | None = None,
    ) -> Answer:
        """Do what an operator requests, and record it; without the operator key nothing is done.

        Where the operator `says` something, the record has that, and what it is `about`.
        """
        decision = self._rest.decision(method, arrival, act, approval, says, about)
        completed = await self._pipeline.run(decision)
        if isinstance(completed.outcome, Done):
            return answer_of(completed, completed.outcome.wire, 200)
        return rest_answer(completed)

    def execute(self, frame: Frame, arrival: Arrival, tool: str | None = None) -> Begun:
        """Run the body of one request to `/execute`, or to a `tool`'s own route.

        Return its call, which has ended, or a coroutine that returns the answer.
        """
        if self._servers is not None and not self._servers.is_settled:
            return self._execute_after(self._servers.settle, frame, arrival, tool)
        if frame is OVERSIZE:
            return self.refuse_execution(Refused(Reason.FRAME_TOO_LARGE), arrival)
        try:
            exchange = self._rest.read(parse(frame), arrival, tool)
        except Refused as refusal:
            exchange = RestExchange(unread(frame, arrival, refusal))
        except Exception as error:  # noqa: BLE001 - a bug of ours is recorded and answered, here too
            exchange = RestExchange(unread(frame, arrival, Refused(Reason.INTERNAL, note=place_of(error))))
        late = None if self._servers is None else self._servers.late_servers_of(exchange.call)
        if late is not None:
            return self._execute_after(late, frame, arrival, tool)
        begun = self._pipeline.begin(exchange)
        return begun if isinstance(begun, CallState) else _answered(begun)

    async def _execute_after(
        self,
        settle: Callable[[], Coroutine[Any, Any, object]],
        frame: Frame,
        arrival: Arrival,
        tool: str | None,
    ) -> Answer:
        """Run a request once MCP servers behind us have said what they offer."""
        await settle()
        begun = self.execute(frame, arrival, tool)
        return begun.reply() if isinstance(begun, CallState) else await begun

    async def refuse_execution(self, refusal: Refused, arrival: Arrival) -> Answer:
        """Record and answer a REST request that its door refused unread."""
        return rest_answer(await self._pipeline.run(RestExchange(unread(b"", arrival, refusal))))

    async def invoke(
        self,
        tool: str,
        arguments: JSONObject,
        arrival: Arrival,
        meta: JSONObject,
        listener: Listener | None = None,
    ) -> Completed:
        """Run one call that did not come as a message: same path, same record, no wire contract.

        A `listener` hears what the tool reports while it runs.
        """
        message: JSONObject = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": METHOD,
            "params": {"tool": TOOL_PREFIX + slug_of(tool), "input": arguments, "_meta": meta},
        }
        await self.settle()
        exchange: Exchange = self._envelope.read(message, b"1", arrival)
        late = None if self._servers is None else self._servers.late_servers_of(exchange.call)
        if late is not None:
            await late()
            exchange = self._envelope.read(message, b"1", arrival)
        if listener is not None:
            exchange = HeardExchange(exchange.call, listener)
        return await self._pipeline.run(exchange)

    async def _refuse(
        self,
        content: JSON | bytes,
        identifier: Id,
        arrival: Arrival,
        refusal: Refused,
        *,
        is_mcp: bool = False,
    ) -> Answer:
        """Record and answer a message that is in no wire contract."""
        completed = await self._pipeline.run(Exchange(unread(content, arrival, refusal)))
        if isinstance(content, dict) and nobody_waits(content):
            return answer_of(completed, None, 202, is_notification=True)
        ending = completed.outcome
        assert isinstance(ending, Ending)
        frame = mcp_refusal_frame if is_mcp else refusal_frame
        return answer_of(completed, frame(ending, identifier), ending.row.http)


async def _answered(running: Coroutine[Any, Any, CallState]) -> Answer:
    return (await running).reply()
