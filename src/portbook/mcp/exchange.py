"""`McpExchange`: one MCP request as a call, and how its outcome is written in its revision.

What a tool seldom asks for is made when it asks: a client to talk to, and the way that reports take to it.
The result of `tools/call` has content for the model and `structuredContent` for programs.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from portbook.canonical import STRICT, NotWritten, fingerprint, json_bytes, rewritten_bytes, write
from portbook.dialects.exchange_contract import Exchange
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.mcp.error_results_and_http_status import META_REDACTED, status_of, told_to_model
from portbook.mcp.listings_and_cache_lifetime import has_tasks, missing_servers_of
from portbook.mcp.notifications_to_client import Notifications
from portbook.mcp.questions_to_client import ClientRequests, LiveClient, RoundClient
from portbook.mcp.report_queue import Emit, Outlet
from portbook.mcp.results import LARGE, Results, Sealing, around_of, shape_of, with_meta, writable
from portbook.mcp.rounds_and_request_state import Carried, StateCodec
from portbook.model import (
    JSON,
    NO_CONTEXT,
    Answer,
    Arrival,
    Call,
    Completed,
    Done,
    Draft,
    InputNeeded,
    JSONObject,
    Outcome,
    Resumption,
    Sealed,
)
from portbook.protocol.extensions import TASKS, declares, missing_extension
from portbook.protocol.mirrored_headers import VERSION, refuse_params
from portbook.protocol.negotiation import Session
from portbook.protocol.revisions_and_methods import Revision
from portbook.text.named_tuple import new_tuple
from portbook.text.slotted import slotted
from portbook.tools.catalog import Tool
from portbook.tools.uri_templates import MAX_URI
from portbook.wire.jsonrpc import BEFORE_ID, BEFORE_RESULT, Id, UnusableId, generic_error, mcp_refusal_frame

if TYPE_CHECKING:
    from portbook.mcp.task_methods import TaskClient

__all__ = [
    "NAME_AND_ARGUMENTS",
    "REQUEST_MEMBERS",
    "CallForm",
    "ClientLink",
    "McpExchange",
    "McpParts",
    "bound_to",
    "write_error",
]

# Objects that every call makes are filled where they are made: a constructor takes half as long again.
_new: Final[Any] = object.__new__

# The members of a request with params, and those of the params of most calls.
REQUEST_MEMBERS: Final = 4
NAME_AND_ARGUMENTS: Final = 2


@slotted
class ClientLink:
    """What is known of the client that sent a request, and the way to it before the answer."""

    session: Session
    client_requests: ClientRequests
    emit: Emit
    let_go: Callable[[], None] | None = None
    reaches_client: bool = True
    """Whether the client gets what is emitted before the answer."""


@slotted
class McpParts:
    """What all exchanges share."""

    results: Results
    states: StateCodec
    notifications: Notifications


class McpExchange(Exchange):
    """One MCP request."""

    __slots__ = (
        "_carried",
        "_client",
        "_form",
        "_link",
        "_loop",
        "_missing",
        "_parts",
        "identifier",
        "is_over",
        "method",
        "outlet",
        "params",
        "revision",
    )

    def __init__(
        self,
        call: Call,
        parts: McpParts,
        link: ClientLink,
        method: str,
        params: JSONObject,
        revision: Revision,
        identifier: Id,
        carried: Carried | None,
    ) -> None:
        self.call = call
        self._parts = parts
        self._link = link
        self._loop = get_running_loop()  # a tool may run in a thread without one
        self.method = method
        self.params = params
        self.revision = revision
        self.identifier = identifier
        self._carried = carried
        self.handler = self.act = self.report = None
        self.is_heeded = True
        self._form: CallForm | None = None
        self._client: LiveClient | RoundClient | TaskClient | None = None
        self.outlet: Outlet | None = None
        """The way to the client while the call runs, once something used it."""
        self.is_over = False
        self._missing: Sequence[str] = ()

    def shared(self) -> McpParts:
        """Return what all exchanges share."""
        return self._parts

    @property
    def missing_servers(self) -> Sequence[str]:
        """Return the MCP servers that the list in the answer has nothing of, for its record."""
        return self._missing

    @property
    def resumption(self) -> Resumption | None:
        """Return what this round continues."""
        return None if self._carried is None else self._carried.resumption

    @property
    def content(self) -> JSON | bytes:
        """Return the message without its id."""
        return self.call.content or {"method": self.method, "params": self.params}

    @property
    def carried(self) -> Carried:
        """Return the answers that the client sent with this round."""
        if self._carried is None:
            self._carried = Carried()
        return self._carried

    @property
    def meta(self) -> JSONObject:
        """Return the `_meta` of the request."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def _settled_revision(self) -> Revision | None:
        """Return the revision if it was agreed on or named, not assumed."""
        is_settled = self._link.session.revision is not None or not self.revision.has_handshake
        return self.revision if is_settled else None

    @property
    def may_detach(self) -> bool:
        """Return whether the call may continue as a task."""
        return self.method == "tools/call" and not self.revision.has_handshake and declares(self.meta, TASKS)

    @property
    def wants_task(self) -> bool:
        """Return whether the client asked for a task, as 2025-11-25 does."""
        is_asked = self.method == "tools/call" and isinstance(self.params.get("task"), dict)
        return is_asked and self.revision.has_task_requests

    def client(self) -> LiveClient | RoundClient | TaskClient | None:
        """Return the client, where a tool can reach it. From any thread."""
        if self._client is None and self.call.kind != "completion":
            link, outlet, notifications = self._link, self.way_out(), self._parts.notifications
            if self.revision.has_handshake:
                live = LiveClient(link.session, self.revision, outlet, link.client_requests, notifications)
                self._client = _with_task(live) if self.wants_task else live
            else:
                self._client = RoundClient(self.meta, self.carried, self.revision, outlet, notifications)
        return self._client

    def way_out(self) -> Outlet:
        """Return the way to the client while the call runs. From any thread."""
        if self.outlet is None:
            link = self._link
            self.outlet = Outlet(link.emit, link.let_go, reaches_client=link.reaches_client, loop=self._loop)
            if self.is_over:
                self.outlet.end()
        return self.outlet

    def send_reports(self) -> None:
        """Send the reports that wait."""
        if self.outlet is not None:
            self.outlet.flush()

    def close(self) -> None:
        """Drop what the tool still sends: its call has ended."""
        self.is_over = True
        if self.outlet is not None:
            self.outlet.end()

    def report_under(self, token: JSON) -> None:
        """Report progress to the client, under the token that it gave."""
        outlet, notifications, revision = self.way_out(), self._parts.notifications, self.revision

        def report(progress: float, total: float | None, message: Draft[str] | None) -> None:
            outlet.report(notifications.progress(token, progress, total, message, revision))

        self.report = report

    def began(self, tool: Tool) -> None:
        """Compare headers with the arguments, and continue as a task where the tool wants to.

        Raises `Refused` where they differ, or where the client does not know tasks that the tool requires.
        """
        spec = tool.spec
        if self.revision.has_handshake:
            if "task" in self.params and self.wants_task:
                self._begin_task(tool)
            return
        if spec.kind != "tool":
            return
        headers = self.call.arrival.headers
        if headers is not None and tool.marks:
            refusal = refuse_params(headers, tool.marks, self.call.arguments)
            if refusal is not None:
                raise refusal
        if spec.task == "required" and not declares(self.meta, TASKS):
            raise missing_extension(TASKS)
        client = self.client() if spec.task != "never" and spec.detaches else None
        if client is not None:
            client.detach()

    def _begin_task(self, tool: Tool) -> None:
        if not has_tasks(tool):
            finding = Finding("/params/task", "the tool does not run as a task; leave it out", "task", "")
            raise Refused(Reason.UNKNOWN_METHOD, (finding,))
        client = self.client()
        assert client is not None
        client.detach()

    def seal(
        self,
        tool: Tool | None,
        result: Any,
        body: bytes,
        envelope: JSONObject | None,
        is_redacted: bool,
        links: list[JSON] | None = None,
        text: str | None = None,
    ) -> Sealed:
        """Return a result in the form of this revision, checked.

        Raises `Failed` where the official schema does not allow it.
        """
        results, method, revision = self._parts.results, self.method, self.revision
        if tool is None:
            self._missing = missing_servers_of(result)
            return results.seal_answer(method, result, body, revision)
        switch = tool.spec.switch
        if switch is not None and not switch.is_on and not switch.is_replaced:  # switched off while it ran
            raise Failed(Reason.BAD_RESULT, note="no longer served")
        sealing = None if self._form is None else self._form.sealing
        if sealing is None or sealing.tool is not tool:  # a server behind us may change what it offers
            sealing = self._sealing_of(tool)
        shaped: JSONObject
        around, allows = sealing.around, sealing.allows
        has_meta = is_redacted or envelope is not None or links
        if around is None or type(result) is not dict:
            shaped = sealing.shape(result, body, self.params)
        else:  # nearly every result
            text = body.decode() if text is None else text
            blocks: list[JSON] = [{"type": "text", "text": text}]
            shaped = {"content": blocks, "structuredContent": result}
            if around.wraps:
                shaped["structuredContent"] = {"result": result}
            if around.kind is not None:
                shaped["resultType"] = around.kind
            if not has_meta:
                # Its own JSON stands in there twice: as a text, and as it is.
                before, between, after = around.before, around.between, around.after
                sealed = (
                    (before, body.replace(b"\\", b"\\\\").replace(b'"', b'\\"'), between, body, after)
                    if len(body) < LARGE
                    else around.pieces_of_large(text, body)
                )
                if allows(shaped):
                    return sealed
                return results.settle_invalid(method, shaped, sealed, revision)
        if has_meta:
            shaped = with_meta(shaped, envelope if tool.spec.kind == "tool" else None, is_redacted, links)
        told = _written(shaped if len(body) < LARGE else writable(shaped, result, body))
        return told if allows(shaped) else results.settle_invalid(method, shaped, told, revision)

    def _sealing_of(self, tool: Tool) -> Sealing:
        """Return how the results of a tool are sealed, found with its first one."""
        results, revision = self._parts.results, self.revision
        sealing = results.sealings[revision.name].get(tool.spec.name)
        if sealing is None or sealing.tool is not tool:
            shape, around = shape_of(tool, revision), around_of(tool, revision)
            sealing = results.sealing_of(self.method, tool, revision, shape, around)
        if self._form is not None:
            self._form.sealing = sealing
        return sealing

    def pause(self, needed: InputNeeded) -> bytes | None:
        """Return the questions of a call as a result; None where this revision asks over the connection.

        Raises `Failed` where the official schema does not allow it.
        """
        call = self.call
        if self.revision.has_handshake or call.kind == "completion":
            return None
        result: JSONObject = {
            "resultType": "input_required",
            "inputRequests": cast("JSON", needed.requests),
            "requestState": self._parts.states.seal(self.bound(), self.carried.content(needed)),
        }
        if needed.is_redacted:
            result["_meta"] = {META_REDACTED: True}
        return self._parts.results.checked(self.method, result, json_bytes(result), self.revision)

    def bound(self) -> JSON:
        """Return what a requestState is bound to: this call, by this caller."""
        call = self.call
        return bound_to(self.method, call.tool, call.arguments, call.arrival.key)

    def body(self, outcome: Outcome) -> bytes:
        """Return the message that answers the request."""
        told = outcome.sealed if type(outcome) is Done else self.told(outcome)
        if type(told) is tuple:
            a, b, c, d, e = told
            return b"".join((BEFORE_ID, self.identifier, BEFORE_RESULT, a, b, c, d, e, b"}"))
        if type(told) is bytes:
            return b"".join((BEFORE_ID, self.identifier, BEFORE_RESULT, told, b"}"))  # as `result_frame`
        assert isinstance(outcome, Ending)
        return write_error(self._with_uri(outcome), self.identifier, self._settled_revision)

    def pieces(self, outcome: Outcome) -> tuple[bytes, ...]:
        """Return the pieces of that message."""
        told = outcome.sealed if type(outcome) is Done else None
        if type(told) is not tuple:
            return (self.body(outcome),)
        return (BEFORE_ID, self.identifier, BEFORE_RESULT, *told, b"}")

    def write(self, completed: Completed) -> Answer:
        """Return the answer to the request."""
        outcome, status = completed.outcome, 200
        if not isinstance(outcome, Done) and not self._is_for_model(outcome):
            status = status_of(outcome, self._settled_revision)
        body = self.body(outcome)
        return new_tuple(Answer, (body, status, False, completed.identity, None, completed.is_redacted))

    def told(self, outcome: Outcome) -> bytes | None:
        """Return the result for an outcome; None where it is an error."""
        if isinstance(outcome, Done):
            return outcome.wire
        if self._is_for_model(outcome):
            return json_bytes(told_to_model(outcome, self.revision))
        return None

    def _is_for_model(self, ending: Ending) -> bool:
        """Return whether an ending is told as a result, which the model reads."""
        since = ending.row.to_model_since
        return self.method == "tools/call" and bool(since) and self.revision.name >= since

    def error_of(self, ending: Ending) -> JSONObject:
        """Return the JSON-RPC error for an ending."""
        return cast("JSONObject", generic_error(ending, self.revision.name))

    def _with_uri(self, ending: Ending) -> Ending:
        """Return an ending that names the missing resource, as MCP requires."""
        uri = self.params.get("uri")
        if ending.reason is Reason.UNKNOWN_RESOURCE and isinstance(uri, str):
            return Refused(ending.reason, ending.findings, details={"uri": uri[:MAX_URI]})
        return ending


class _RepeatedExchange(McpExchange):
    """One more request of a form, which fills it."""

    __slots__ = ()
    __init__: Any = object.__init__


class CallForm:
    """What a call has in common with all others of its tool on a connection, found when the first was read.

    The others differ in their ids and arguments alone. Each is a request with a name and arguments, written
    as we write JSON, and the official schema is run on it.
    """

    __slots__ = (
        "_around",
        "_contract",
        "_is_sound",
        "_method",
        "_parts",
        "_wish",
        "name",
        "revision",
        "sealing",
        "tool",
    )

    def __init__(
        self, exchange: McpExchange, tool: Tool, is_sound: Callable[[JSONObject], bool], message_bytes: int
    ) -> None:
        """Take the form of the call of `exchange`, whose message has so many bytes."""
        call = exchange.call
        self.name, self._wish, self._contract = call.tool or "", call.wish, call.contract
        self._around = message_bytes - call.input_bytes - len(exchange.identifier)
        self._method, self.revision, self.tool = exchange.method, exchange.revision, tool
        self._is_sound = is_sound
        self.sealing: Sealing | None = None
        """How results are sealed, once one was."""
        self._parts = exchange.shared()

    @classmethod
    def of(
        cls,
        exchange: McpExchange,
        tool: Tool,
        is_sound: Callable[[JSONObject], bool],
        message: JSONObject,
        message_bytes: int,
    ) -> CallForm | None:
        """Return the form of a call that was read; None where more than its arguments may be its own."""
        call, params = exchange.call, exchange.params
        is_plain = (
            call.kind == "tool"
            and call.flaw is None
            and call.trace is None
            and exchange.revision.has_handshake
            and len(message) == REQUEST_MEMBERS
            and len(params) == NAME_AND_ARGUMENTS
            and params.get("name") == tool.spec.name
            and type(params.get("arguments")) is dict
        )
        return cls(exchange, tool, is_sound, message_bytes) if is_plain else None

    def read(
        self,
        message: JSONObject,
        params: JSONObject,
        arguments: JSONObject,
        message_bytes: int,
        identifier: Id,
        arrival: Arrival,
        link: ClientLink,
    ) -> McpExchange | None:
        """Return a message, which has an id and so many members, as a further call of this form.

        None where it may be more than that, and where the official schema does not allow it.
        """
        headers, is_sound = arrival.headers, self._is_sound
        if (
            len(params) != NAME_AND_ARGUMENTS
            or type(identifier) is not bytes
            or link.session.revision is not self.revision
            or arrival.traceparent
            or (headers is not None and headers.get(VERSION) != self._contract)
            or not is_sound(message)  # so it is of this method, and its arguments are an object
        ):
            return None
        call = _new(Call)
        call.arrival = arrival
        call.method, call.tool, call.kind = self._method, self.name, "tool"
        call.arguments, call.input_bytes = arguments, message_bytes - self._around - len(identifier)
        call.context = NO_CONTEXT
        call.wait_ms = 0
        call.wish, call.contract = self._wish, self._contract
        call.trace = call.approval = call.flaw = call.content = call.operator_says = None
        exchange: Any = _RepeatedExchange()
        exchange.call = call
        exchange._parts, exchange._link = self._parts, link  # noqa: SLF001
        exchange._loop = get_running_loop()  # noqa: SLF001
        exchange.method, exchange.params = self._method, params
        exchange.revision, exchange.identifier = self.revision, identifier
        exchange._form, exchange.is_heeded = self, False  # noqa: SLF001
        exchange._carried = exchange.handler = exchange.act = exchange.report = None  # noqa: SLF001
        exchange._client = exchange.outlet = None  # noqa: SLF001
        exchange.is_over, exchange._missing = False, ()  # noqa: SLF001
        return exchange


def _with_task(live: LiveClient) -> TaskClient:
    from portbook.mcp.task_methods import TaskClient  # few clients ask for tasks

    return TaskClient(live)


def bound_to(method: str, name: str | None, arguments: JSONObject, key: str | None) -> JSON:
    """Return what a requestState of such a call is bound to."""
    return [method, name, arguments, fingerprint(key)]


def write_error(ending: Ending, identifier: Id, revision: Revision | None) -> bytes:
    """Return an error frame, without an id where that is unknown and the revision allows it."""
    is_known = not isinstance(identifier, UnusableId)
    may_omit = revision is not None and revision.may_omit_id
    name = "" if revision is None else revision.name
    return mcp_refusal_frame(ending, None if may_omit and not is_known else identifier, name)


def _written(told: JSONObject) -> bytes:
    try:
        return write(told, None, STRICT)
    except NotWritten:
        return rewritten_bytes(told)
