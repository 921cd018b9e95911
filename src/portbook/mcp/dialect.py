"""The MCP dialect, in every revision. Pure: no I/O.

A message is checked in this order, and the first failure decides:

1. It is JSON-RPC: without that, the rest of it has no meaning.
2. Its revision is supported: the one that `initialize` agreed on, or the one that the request names.
3. This revision has its method, and the server serves it.
4. Over HTTP, its headers match its body.
5. The official schema of the revision allows it.
6. What the schema cannot express: a second `initialize`, an id in use, a requestState that is not ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from portbook.canonical import fingerprint, rewritten_bytes
from portbook.dialects.portbook_meta import context_of, controls_of
from portbook.errors import Finding, Reason, Refused
from portbook.mcp.exchange import (
    NAME_AND_ARGUMENTS,
    REQUEST_MEMBERS,
    ClientLink,
    McpExchange,
    McpParts,
    bound_to,
)
from portbook.mcp.method_handlers import About, Asked, Handler, Handlers, TaskStore
from portbook.mcp.notifications_to_client import Notifications
from portbook.mcp.results import Results
from portbook.mcp.rounds_and_request_state import Carried, StateCodec, carried_by
from portbook.model import (
    ENVELOPE_CONTROLS,
    JSON,
    NO_CONTEXT,
    NO_WISH,
    Arrival,
    Call,
    Caller,
    CallerContext,
    EnvelopeRequest,
    JSONObject,
    Kind,
)
from portbook.protocol.extensions import (
    EXTENSIONS,
    META_CAPABILITIES,
    declares,
    findings_of,
    missing_extension,
)
from portbook.protocol.message_validation import Mode, SchemaValidator
from portbook.protocol.mirrored_headers import VERSION, are_mirrored, refuse_headers
from portbook.protocol.negotiation import META_REVISION, Session, revision_of
from portbook.protocol.revisions_and_methods import REVISIONS, Revision, Sender, method_of
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Catalog
from portbook.tools.tool_names import is_slug
from portbook.tools.uri_templates import MAX_URI
from portbook.wire.jsonrpc import Id, UnusableId, problem_of, refuse_structure
from portbook.wire.trace_context import trace_of

__all__ = ["McpDialect", "Mode", "ServedMethod"]

_NO_META: Final[JSONObject] = {}  # never written to

_META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"

# A longer method is no method of MCP, and is not recorded.
_MAX_METHOD: Final = 128

_UNUSABLE: Final = UnusableId.because("unusable")

# The methods that run something, and what they run.
_GOVERNED: Final[dict[str, Kind]] = {
    "tools/call": "tool",
    "resources/read": "resource",
    "prompts/get": "prompt",
    "completion/complete": "completion",
}


# What may need input first, and the members of its next request that carry the answers.
_ROUNDS: Final = frozenset({"tool", "resource", "prompt"})
_CARRY: Final = frozenset({"inputResponses", "requestState"})

# The bytes around the id, the name and the arguments of most calls: where one is written as we write JSON,
# all others are arguments.
_AROUND: Final = len(b'{"jsonrpc":"2.0","id":,"method":"tools/call","params":{"name":"","arguments":}}')


_new_call: Final[Any] = object.__new__


class _Claims(NamedTuple):
    """What a request says beside its call."""

    context: CallerContext
    trace: str | None
    approval: str | None
    wait_ms: int
    wish: EnvelopeRequest | None
    carried: Carried | None
    """What it carries from earlier rounds."""
    flaw: Refused | None
    """What is wrong with it."""


class ServedMethod(NamedTuple):
    """What this server does with a method of a revision; the same for every message of it."""

    allows: Callable[[JSONObject], bool] = lambda _: True
    """Returns whether the official schema allows a message; always, where messages are not checked."""
    is_sound: Callable[[JSONObject], bool] = lambda _: False
    """Returns whether a message has no flaw, for certain, but for what its `_meta` and headers may ask: the
    official schema of its method allows it, and nothing is asked of it beyond that."""
    kind: Kind | None = None
    """What the method runs, if anything."""
    is_notification: bool = False
    is_extension: bool = False
    """Whether an extension defines the method, and not the revision."""


def _is_answer_too(message: JSONObject) -> bool:
    return "result" in message or "error" in message


class McpDialect:
    """Reads and writes MCP."""

    def __init__(
        self,
        catalog: Catalog,
        validator: SchemaValidator,
        *,
        states: StateCodec,
        desk: TaskStore,
        about: About | None = None,
        incoming: Mode = "enforce",
        outgoing: Mode = "enforce",
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._catalog = catalog
        self._by_any_name = self.tools = catalog.by_any_name
        self._validator = validator
        self._incoming: Mode = incoming
        self._warn = warn
        results = Results(validator, outgoing, warn)
        handlers = Handlers(catalog, results.is_listable, desk, about or About())
        self._handlers, self._of_tasks = handlers.handlers, handlers.of_tasks
        self.notifications = Notifications(validator, outgoing, warn)
        self._served: defaultdict[str, dict[str, ServedMethod]] = defaultdict(dict)
        self._parts = McpParts(results, states, self.notifications)

    def methods_of(self, revision: Revision) -> Mapping[str, ServedMethod]:
        """Return the methods of a revision that were served before, by their names; it grows."""
        return self._served[revision.name]

    def read(
        self,
        message: JSONObject,
        method: JSON,
        params: JSON,
        served: ServedMethod | None,
        identifier: Id,
        arrival: Arrival,
        link: ClientLink,
        tight_bytes: int = 0,
    ) -> McpExchange:
        """Return the message as an exchange; if a check fails, its call has that flaw.

        `served` is its method, where that was served before, and `tight_bytes` its length, where it was
        written as we write JSON.
        """
        headers, flaw, meta, revision = arrival.headers, None, _NO_META, link.session.revision
        method = method if type(method) is str else ""
        if type(params) is not dict:
            params = {}
        elif "_meta" in params and type(given := params["_meta"]) is dict:
            meta = given
        # Of a valid message nothing else is asked; where it may be flawed, the ladder finds the first flaw.
        if (
            revision is None
            or served is None
            or META_REVISION in meta
            or (headers is not None and headers.get(VERSION) != revision.name)
            or (type(identifier) is not bytes and problem_of(identifier) is not None)
            or not served.is_sound(message)
            or ((len(message) != REQUEST_MEMBERS or "id" not in message) and _is_answer_too(message))
            or (not params and "params" not in message)
        ):
            revision, flaw, identifier = self._examine(message, method, meta, identifier, link, headers)
        kind = _GOVERNED.get(method) if served is None else served.kind
        name, arguments = params.get("name"), params.get("arguments")
        tool = self._by_any_name.get(name) if kind == "tool" and type(name) is str else None
        if tool is not None and type(arguments) is dict:
            called = tool.spec.name
        else:
            (called, arguments), tight_bytes = self._named(kind, params), 0
        is_usual = len(params) == NAME_AND_ARGUMENTS and len(message) == REQUEST_MEMBERS
        if tight_bytes and is_usual and flaw is None and called is not None and called == name:
            size = tight_bytes - _AROUND - len(identifier) - len(called)
        else:
            size = 0 if kind is None else len(rewritten_bytes(arguments))
            if kind == "tool" and called is not None and called != name:
                params = {**params, "name": called}  # the same call, by whichever of its names
        says_more = (meta or not revision.has_handshake) and _says_more(meta, params)
        if says_more or arrival.traceparent:
            context, trace, approval, wait_ms, wish, carried, flaw = self._claims(
                meta, arrival, revision, flaw, params, (kind, method, called, arguments)
            )
        else:
            context, trace, approval, wait_ms, carried = NO_CONTEXT, None, None, 0, None
            wish = NO_WISH if kind == "tool" else None
        call = _new_call(Call)  # filled here: its constructor takes half as long again
        call.arrival = arrival
        call.method = method if flaw is None or 0 < len(method) <= _MAX_METHOD else None
        call.tool, call.kind = called, kind or "tool"
        call.arguments, call.input_bytes = arguments, size
        call.context, call.trace, call.approval, call.wait_ms = context, trace, approval, wait_ms
        call.wish = wish
        call.flaw, call.contract = flaw, revision.name
        call.content = call.operator_says = None
        exchange = McpExchange(call, self._parts, link, method, params, revision, identifier, carried)
        if kind is None:
            exchange.handler = self._answerer(method, params, revision, link.session, arrival)
        if says_more and (token := meta.get("progressToken")) is not None:
            exchange.report_under(token)
        return exchange

    def _answerer(
        self, method: str, params: JSONObject, revision: Revision, session: Session, arrival: Arrival
    ) -> Callable[[Caller], JSON] | None:
        """Return what answers a request that runs no tool."""
        handler = self._handler_of(method, revision)
        if handler is None:
            return None
        return partial(handler, Asked(params, revision, session, fingerprint(arrival.key)))

    def _claims(
        self,
        meta: JSONObject,
        arrival: Arrival,
        revision: Revision,
        flaw: Refused | None,
        params: JSONObject,
        called: tuple[Kind | None, str, str | None, JSONObject],
    ) -> _Claims:
        """Return what a request says beside its call: in its `_meta`, in headers, and from earlier rounds."""
        kind, method, name, arguments = called
        controls = controls_of(meta)
        context = context_of(controls) if meta else NO_CONTEXT
        approval, carried = controls.approval, None
        wish = NO_WISH if kind == "tool" else None
        if wish is not None and not ENVELOPE_CONTROLS.isdisjoint(meta):
            wish = EnvelopeRequest(meta)
        if not revision.has_handshake and flaw is None and kind in _ROUNDS and not _CARRY.isdisjoint(params):
            bound = partial(bound_to, method, name, arguments, arrival.key)
            try:
                carried = carried_by(params, bound, self._parts.states)
                approval = approval or carried.approval
            except Refused as refusal:
                flaw = refusal
        trace = _trace(meta, arrival)
        return _Claims(context, trace, approval, controls.wait_ms, wish, carried, flaw)

    def _examine(
        self,
        message: JSONObject,
        method: str,
        meta: JSONObject,
        identifier: Id,
        link: ClientLink,
        headers: Mapping[str, str] | None,
    ) -> tuple[Revision, Refused | None, Id]:
        """Return the revision of a message, its first flaw, and the id that an answer may repeat."""
        named = self._sound_revision(message, meta, identifier, headers) if meta else None
        if named is not None:
            return named, None, identifier
        revision, refusal = revision_of(message, link.session, headers)
        flaw = refuse_structure(message, identifier) or refusal
        flaw = flaw or self._refuse(message, method, meta, revision, link.session, headers)
        is_usable = flaw is None or all(finding.pointer != "/id" for finding in flaw.findings)
        return revision, flaw, identifier if is_usable else _UNUSABLE

    def _sound_revision(
        self, message: JSONObject, meta: JSONObject, identifier: Id, headers: Mapping[str, str] | None
    ) -> Revision | None:
        """Return the revision without a handshake that a request names; None where it may have a flaw."""
        name, method = meta.get(META_REVISION), message.get("method")
        if type(name) is not str or type(method) is not str or name not in self._served:
            return None
        revision, served = REVISIONS[name], self._served[name].get(method)
        is_sound = (
            served is not None
            and not revision.has_handshake
            and type(identifier) is bytes
            and (headers is None or are_mirrored(headers, method, message["params"], name))
            and served.is_sound(message)
            and (len(message) == REQUEST_MEMBERS or not _is_answer_too(message))
        )
        return revision if is_sound else None

    def _refuse(
        self,
        message: JSONObject,
        method: str,
        meta: JSONObject,
        revision: Revision,
        session: Session,
        headers: Mapping[str, str] | None,
    ) -> Refused | None:
        if isinstance(message.get("id"), float) and (flaw := _refuse_id(message)):
            return flaw
        served = self._served[revision.name].get(method) or self._look_up(method, revision)
        if served is None:
            return Refused(Reason.UNKNOWN_METHOD)
        if served.is_extension:
            return self._refuse_extension(message, method, meta, headers)
        if "id" not in message and not served.is_notification:
            return Refused(Reason.NOT_JSONRPC, (Finding("/id", "a request needs an id", "required", ""),))
        if headers is not None and not revision.has_handshake and META_REVISION in meta:
            refusal = refuse_headers(headers, message, revision.name)
            if refusal is not None:
                return refusal
        if not served.allows(message) and (
            flaw := self._validator.refuse_incoming(
                method, message, revision.name, self._incoming, self._warn
            )
        ):
            return flaw
        if not isinstance(message.get("params", _NO_META), dict):  # also where the schema is not enforced
            return Refused(Reason.BAD_PARAMS, (Finding("/params", "must be an object", "type", ""),))
        if method == "initialize" and session.revision is not None:
            finding = Finding("/method", "already initialized; send initialize once", "session", "")
            return Refused(Reason.NOT_JSONRPC, (finding,))
        return None

    def _look_up(self, method: str, revision: Revision) -> ServedMethod | None:
        """Return what this server does with a method of a revision; None where it does not serve it."""
        known = method_of(method, revision.name)
        extension = None if revision.has_handshake else EXTENSIONS.get(method)
        if known is None and extension is not None and method in self._handlers:
            served = ServedMethod(is_extension=True)
        else:
            # An older revision may have a different method with the name of an extension's.
            is_answered = method in (self._of_tasks if revision.has_task_requests else ()) or (
                method in self._handlers and method not in EXTENSIONS
            )
            is_served = is_answered or (method in _GOVERNED and self._serves(_GOVERNED[method]))
            if known is None or known.sender is Sender.SERVER or not (is_served or known.is_notification):
                return None  # not kept: a client can make up any number of methods
            served = ServedMethod(kind=_GOVERNED.get(method), is_notification=known.is_notification)
            if self._incoming != "off":
                allows = self._validator.check_of(method, revision.name)
                asks_more = method == "initialize"
                served = served._replace(allows=allows, is_sound=served.is_sound if asks_more else allows)
        self._served[revision.name][method] = served
        return served

    def _refuse_extension(
        self, message: JSONObject, method: str, meta: JSONObject, headers: Mapping[str, str] | None
    ) -> Refused | None:
        extension = EXTENSIONS[method]
        if headers is not None and META_REVISION in meta:
            refusal = refuse_headers(headers, message, meta[META_REVISION])
            if refusal is not None:
                return refusal
        if findings := findings_of(extension, message):
            return Refused(Reason.BAD_PARAMS, findings)
        if extension.needs_client and not declares(meta, extension.extension):
            return missing_extension(extension.extension)
        return None

    def _serves(self, kind: Kind) -> bool:
        return kind == "tool" or self._catalog.has(kind)

    def _handler_of(self, method: str, revision: Revision) -> Handler | None:
        of_tasks = self._of_tasks.get(method) if revision.has_task_requests else None
        return of_tasks or self._handlers.get(method)

    def _named(self, kind: Kind | None, params: JSONObject) -> tuple[str | None, JSONObject]:
        """Return the name that a request calls, if it is a possible one, and the arguments."""
        name, arguments = params.get("name"), params.get("arguments")
        if type(arguments) is not dict:
            arguments = {}
        if kind == "tool":
            found = self._by_any_name.get(name) if type(name) is str else None
            if found is not None:
                return found.spec.name, arguments
            if isinstance(name, str):
                name = self._catalog.canonical_name(name) or name  # a withheld tool has its names, too
            return (name if isinstance(name, str) and is_slug(name) else None), arguments
        if kind == "prompt":
            return (name if isinstance(name, str) and len(name) <= 128 else None), arguments
        if kind == "resource":
            uri = params.get("uri")
            found = self._catalog.locate(uri) if isinstance(uri, str) else None
            return (None, {}) if found is None else found
        if kind == "completion":
            reference, argument = _object(params.get("ref")), _object(params.get("argument"))
            named = reference.get("name", reference.get("uri"))
            typed = {name: argument[name] for name in ("name", "value") if name in argument}
            if given := _object(_object(params.get("context")).get("arguments")):
                typed["given"] = given
            return (named if isinstance(named, str) and len(named) <= MAX_URI else None), typed
        return None, arguments


def _says_more(meta: JSONObject, params: JSONObject) -> bool:
    """Return whether a request says more, beside its call, than its revision and who its client is."""
    of_client = (META_REVISION in meta) + (META_CAPABILITIES in meta) + (_META_CLIENT in meta)
    return len(meta) != of_client or "requestState" in params or "inputResponses" in params


def _refuse_id(message: JSONObject) -> Refused | None:
    """Return the refusal of an id that JSON-RPC allows and MCP does not: a fraction."""
    identifier = message.get("id", 0)
    if isinstance(identifier, float) and not identifier.is_integer():
        return Refused(Reason.NOT_JSONRPC, (Finding("/id", "must be a string or an integer", "type", ""),))
    return None


def _trace(meta: JSONObject, arrival: Arrival) -> str | None:
    # The request's own `_meta` wins over a header, which a proxy may have added.
    return trace_of(meta.get("traceparent")) or trace_of(arrival.traceparent)


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
