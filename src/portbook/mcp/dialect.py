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

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol, cast

from portbook.canonical import fingerprint, json_bytes
from portbook.dialects.request_meta import controls_of
from portbook.errors import Ending, Finding, Reason, Refused
from portbook.mcp.errors import META_REDACTED, told_to_model
from portbook.mcp.handlers import Asked, Handlers
from portbook.mcp.http_status import status_of
from portbook.mcp.notifications import Mode, Notifications, first_of
from portbook.mcp.results import Results
from portbook.mcp.rounds import Carried, StateCodec, carried_by
from portbook.mcp.server_info import About
from portbook.mcp.task_methods import TaskDesk
from portbook.model import (
    JSON,
    Arrival,
    Call,
    CallerContext,
    Client,
    Done,
    Draft,
    DraftReport,
    EnvelopeRequest,
    InputNeeded,
    JSONObject,
    Kind,
    Outcome,
)
from portbook.protocol.conformance import SchemaValidator
from portbook.protocol.extensions import EXTENSIONS, TASKS, declares, findings_of, missing_extension
from portbook.protocol.headers import marked_params, refuse_headers, refuse_params
from portbook.protocol.methods import Sender, method_of
from portbook.protocol.negotiation import META_REVISION, meta_of, revision_of
from portbook.protocol.revisions import Revision
from portbook.protocol.session import Session
from portbook.tools.catalog import Catalog
from portbook.tools.spec import is_slug
from portbook.tools.uri_templates import MAX_URI
from portbook.wire.jsonrpc import Id, generic_error, mcp_refusal_frame, refuse_structure, result_frame
from portbook.wire.trace_context import trace_of

__all__ = ["Exchange", "Line", "McpDialect", "Mode"]

_NOTHING_CARRIED: Final = Carried()
_UNUSABLE: Final = Id(b"null", is_present=True, problem="unusable")

# The methods that run something, and what they run; only these may need input first.
_GOVERNED: Final[dict[str, Kind]] = {
    "tools/call": "tool",
    "resources/read": "resource",
    "prompts/get": "prompt",
    "completion/complete": "completion",
}


class Line(Protocol):
    """The way to the client that sent a message."""

    def report(self, draft: Draft[bytes | None]) -> None:
        """Send a report, which may be dropped."""
        ...

    def client(self, revision: Revision, meta: JSONObject, carried: Carried) -> Client:
        """Return the client, for a tool to use; `carried` is what it sent with this round."""
        ...


class Exchange(NamedTuple):
    """A message as a call, with what is needed to answer it."""

    call: Call
    revision: Revision
    is_settled: bool
    """Whether the revision was agreed on or named, not assumed."""
    method: str
    identifier: Id


class McpDialect:
    """Reads and writes MCP."""

    def __init__(
        self,
        catalog: Catalog,
        validator: SchemaValidator,
        *,
        states: StateCodec,
        desk: TaskDesk,
        about: About | None = None,
        incoming: Mode = "enforce",
        outgoing: Mode = "enforce",
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._catalog = catalog
        self._validator = validator
        self._states = states
        self._incoming: Mode = incoming
        self._warn = warn
        self._results = Results(catalog, validator, outgoing, warn)
        self._marked = {tool.spec.name: marked_params(tool.spec.input_schema) for tool in catalog}
        self._handlers = Handlers(catalog, self._results.is_listable, desk, about or About()).handlers
        self.notifications = Notifications(validator, outgoing, warn)

    def recognises(self, message: JSONObject, session: Session | None = None) -> bool:
        """Return whether `message` is MCP: by its method, its `_meta`, or an earlier `initialize`."""
        method = message.get("method")
        is_initialised = session is not None and session.revision is not None
        if is_initialised or not isinstance(method, str):
            return True
        return "/" in method or method in ("initialize", "ping") or META_REVISION in meta_of(message)

    def read(
        self, message: JSONObject, identifier: Id, arrival: Arrival, session: Session, line: Line
    ) -> Exchange:
        """Return the message as a call; if a check fails, as a call with that flaw."""
        flaw = refuse_structure(message, identifier) or _refuse_id(message)
        revision, refusal = revision_of(message, session, arrival.headers)
        method = message.get("method")
        name = method if isinstance(method, str) else ""
        flaw = flaw or refusal or self._refuse(message, name, revision, session, arrival.headers)
        call = self._call(message, name, revision, arrival, flaw, session, line)
        if flaw is not None and any(finding.pointer == "/id" for finding in flaw.findings):
            identifier = _UNUSABLE  # an answer may not repeat an invalid id
        is_settled = session.revision is not None or not revision.has_handshake
        return Exchange(call, revision, is_settled, name, identifier)

    def _refuse(
        self,
        message: JSONObject,
        method: str,
        revision: Revision,
        session: Session,
        headers: Mapping[str, str] | None,
    ) -> Refused | None:
        known = method_of(method, revision.name)
        extension = None if revision.has_handshake else EXTENSIONS.get(method)
        if known is None and extension is not None and method in self._handlers:
            return self._refuse_extension(message, method, headers)
        # An older revision may have a different method with the name of an extension's.
        is_answered = method in self._handlers and method not in EXTENSIONS
        is_served = is_answered or (method in _GOVERNED and self._serves(_GOVERNED[method]))
        if known is None or known.sender is Sender.SERVER or not (is_served or known.is_notification):
            return Refused(Reason.UNKNOWN_METHOD)
        if not known.is_notification and "id" not in message:
            return Refused(Reason.NOT_JSONRPC, (Finding("/id", "a request needs an id", "required", ""),))
        if headers is not None and not revision.has_handshake and META_REVISION in meta_of(message):
            refusal = refuse_headers(headers, message, revision.name)
            if refusal is not None:
                return refusal
        if self._incoming != "off" and (findings := self._validator.findings(method, message, revision.name)):
            if self._incoming == "enforce":
                is_frame = any(finding.pointer in ("/id", "/jsonrpc", "/method") for finding in findings)
                return Refused(Reason.NOT_JSONRPC if is_frame else Reason.BAD_PARAMS, findings)
            self._warn(f"incoming {method} breaks {revision.name}: {first_of(findings)}")
        if not isinstance(message.get("params", {}), dict):  # also where the schema is not enforced
            return Refused(Reason.BAD_PARAMS, (Finding("/params", "must be an object", "type", ""),))
        if method == "initialize" and session.revision is not None:
            finding = Finding("/method", "already initialized; send initialize once", "session", "")
            return Refused(Reason.NOT_JSONRPC, (finding,))
        return None

    def _refuse_extension(
        self, message: JSONObject, method: str, headers: Mapping[str, str] | None
    ) -> Refused | None:
        extension = EXTENSIONS[method]
        if headers is not None and META_REVISION in meta_of(message):
            refusal = refuse_headers(headers, message, meta_of(message)[META_REVISION])
            if refusal is not None:
                return refusal
        if findings := findings_of(extension, message):
            return Refused(Reason.BAD_PARAMS, findings)
        if extension.needs_client and not declares(meta_of(message), extension.extension):
            return missing_extension(extension.extension)
        return None

    def _serves(self, kind: Kind) -> bool:
        return kind == "tool" or self._catalog.has(kind)

    def _call(
        self,
        message: JSONObject,
        method: str,
        revision: Revision,
        arrival: Arrival,
        flaw: Refused | None,
        session: Session,
        line: Line,
    ) -> Call:
        params = _object(message.get("params"))
        meta = _object(params.get("_meta"))
        kind = _GOVERNED.get(method)
        name, arguments = self._named(kind, params)
        if kind == "tool" and name is not None and name != params["name"]:
            params = {**params, "name": name}  # the same call, whichever of its names the tool is called by
        handler = self._handlers.get(method)
        client: Client | None = None
        pause = None
        carried = _NOTHING_CARRIED
        if kind is not None and kind != "completion" and flaw is None:
            if not revision.has_handshake:
                bound = partial(_bound_to, method, name, arguments, arrival)
                try:
                    carried = carried_by(params, bound, self._states)
                except Refused as refusal:
                    flaw = refusal
                pause = partial(self._pause, method, revision, bound, carried)
            client = line.client(revision, meta, carried)
        own_trace = trace_of(meta.get("traceparent"))
        controls = controls_of(meta)
        return Call(
            arrival=arrival,
            method=method if 0 < len(method) <= 128 else None,
            tool=name,
            arguments=arguments,
            input_bytes=len(json_bytes(arguments)) if kind is not None else 0,
            context=CallerContext(
                step_id=1 if controls.step is None else controls.step,
                attempt=controls.attempt or 1,
                session=controls.session,
                correlation=controls.correlation,
            ),
            trace=own_trace or trace_of(arrival.traceparent),
            content={"method": method, "params": cast("JSON", params)},
            flaw=flaw,
            contract=revision.name,
            handler=None
            if handler is None
            else partial(handler, Asked(params, revision, session, fingerprint(arrival.key))),
            seal=partial(self._results.seal, method, kind, name, params.get("uri"), revision),
            report=self._reporter(meta.get("progressToken"), revision, line),
            approval=controls.approval or carried.approval,
            wait_ms=controls.wait_ms,
            wish=EnvelopeRequest(cast("JSON", meta)) if kind == "tool" else None,
            kind=kind or "tool",
            client=client,
            pause=pause,
            began=self._beginning(kind, name, arguments, revision, meta, arrival.headers, client),
        )

    def _named(self, kind: Kind | None, params: JSONObject) -> tuple[str | None, JSONObject]:
        """Return the name that a request calls, if it is a possible one, and the arguments."""
        name, arguments = params.get("name"), _object(params.get("arguments"))
        if kind == "tool":
            return (self._tool_name(name) if isinstance(name, str) else None), arguments
        if kind == "prompt":
            return (name if isinstance(name, str) and len(name) <= 128 else None), arguments
        if kind == "resource":
            uri = params.get("uri")
            found = self._catalog.locate(uri) if isinstance(uri, str) else None
            return (None, {}) if found is None else found
        if kind == "completion":
            reference, argument = _object(params.get("ref")), _object(params.get("argument"))
            named = reference.get("name", reference.get("uri"))
            return (named if isinstance(named, str) and len(named) <= MAX_URI else None), {
                name: argument[name] for name in ("name", "value") if name in argument
            }
        return None, arguments

    def _tool_name(self, name: str) -> str | None:
        """Return the canonical name of the tool that a client calls `name`; None where no tool can be."""
        return self._catalog.canonical_name(name) or (name if is_slug(name) else None)

    def _pause(
        self,
        method: str,
        revision: Revision,
        bound: Callable[[], JSON],
        carried: Carried,
        needed: InputNeeded,
    ) -> bytes:
        """Return the questions of a call as a result.

        Raises `Failed` where the official schema does not allow it.
        """
        result: JSONObject = {
            "resultType": "input_required",
            "inputRequests": cast("JSON", needed.requests),
            "requestState": self._states.seal(bound(), carried.content(needed)),
        }
        if needed.is_redacted:
            result["_meta"] = {META_REDACTED: True}
        return self._results.checked(method, result, json_bytes(result), revision)

    def _beginning(
        self,
        kind: Kind | None,
        name: str | None,
        arguments: JSONObject,
        revision: Revision,
        meta: JSONObject,
        headers: Mapping[str, str] | None,
        client: Client | None,
    ) -> Callable[[], None] | None:
        """Return what to do when a tool is about to run, None for nothing."""
        if kind != "tool" or name is None or revision.has_handshake:
            return None
        marked = self._marked.get(name) if headers is not None else None
        found = self._catalog.find(name)
        use = "never" if found is None else found.spec.task
        if not marked and use == "never":
            return None

        def begin() -> None:
            if marked and headers is not None:
                refusal = refuse_params(headers, marked, arguments)
                if refusal is not None:
                    raise refusal
            if use == "required" and not declares(meta, TASKS):
                raise missing_extension(TASKS)
            if use != "never" and client is not None and found is not None and found.spec.detaches:
                client.detach()

        return begin

    def write(self, exchange: Exchange, outcome: Outcome) -> tuple[bytes, int]:
        """Return the answer to `exchange`, and its HTTP status."""
        told = self.told(exchange, outcome)
        if told is not None:
            return result_frame(exchange.identifier.token, told), 200
        assert isinstance(outcome, Ending)
        revision = exchange.revision if exchange.is_settled else None
        ending = _with_uri(exchange, outcome)
        return self.write_error(ending, exchange.identifier, revision), status_of(ending, revision)

    def told(self, exchange: Exchange, outcome: Outcome) -> bytes | None:
        """Return the result for an outcome; None where it is an error."""
        if isinstance(outcome, Done):
            return outcome.wire
        since = outcome.row.to_model_since
        if exchange.method == "tools/call" and since and exchange.revision.name >= since:
            return json_bytes(told_to_model(outcome, exchange.revision))
        return None

    def error_of(self, exchange: Exchange, ending: Ending) -> JSONObject:
        """Return the JSON-RPC error for an ending."""
        return cast("JSONObject", generic_error(ending, exchange.revision.name))

    def write_error(self, ending: Ending, identifier: Id, revision: Revision | None) -> bytes:
        """Return an error frame, without an id where that is unknown and the revision allows it."""
        is_known = identifier.is_present and identifier.problem is None
        may_omit = revision is not None and revision.may_omit_id
        name = "" if revision is None else revision.name
        return mcp_refusal_frame(ending, None if may_omit and not is_known else identifier.token, name)

    def _reporter(self, token: JSON, revision: Revision, line: Line) -> DraftReport | None:
        if token is None:
            return None

        def report(progress: float, total: float | None, message: Draft[str] | None) -> None:
            line.report(self.notifications.progress(token, progress, total, message, revision))

        return report


def _refuse_id(message: JSONObject) -> Refused | None:
    """Return the refusal of an id that JSON-RPC allows and MCP does not: a fraction."""
    identifier = message.get("id", 0)
    if isinstance(identifier, float) and not identifier.is_integer():
        return Refused(Reason.NOT_JSONRPC, (Finding("/id", "must be a string or an integer", "type", ""),))
    return None


def _bound_to(method: str, name: str | None, arguments: JSONObject, arrival: Arrival) -> JSON:
    """Return what a requestState is bound to: this call, by this caller."""
    return [method, name, arguments, fingerprint(arrival.key)]


def _with_uri(exchange: Exchange, ending: Ending) -> Ending:
    """Return an ending that names the missing resource, as MCP requires."""
    if ending.reason is Reason.UNKNOWN_RESOURCE and isinstance(exchange.call.content, dict):
        uri = _object(exchange.call.content.get("params")).get("uri")
        if isinstance(uri, str):
            return Refused(ending.reason, ending.findings, details={"uri": uri[:MAX_URI]})
    return ending


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}
