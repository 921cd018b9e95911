"""The official dialect: MCP itself, in every revision there is. Pure: no I/O.

Reading climbs these rungs, and the first that fails decides:

1. It is JSON-RPC: without that nothing else in it can be trusted to mean what it says.
2. It is in a revision we speak: the one that `initialize` settled, or the one that the request names.
3. Its method is one that this revision has and that we serve.
4. The official schema of the revision allows it.
5. What the schema cannot know: a second `initialize`, an id that is in use, a cursor of another list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, NamedTuple, cast

from portbook.canonical import json_bytes
from portbook.dialects.meta import controls_of
from portbook.dialects.official_tools import ToolListing, page_of, tool_result
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.model import (
    JSON,
    Arrival,
    Call,
    Caller,
    Context,
    Done,
    JSONObject,
    Outcome,
    Report,
    Wish,
    trace_of,
)
from portbook.patterns import matches
from portbook.protocol.conform import RESULT, SchemaValidator
from portbook.protocol.methods import Sender, method_of
from portbook.protocol.revisions import NEWEST_HANDSHAKE, REVISIONS, STATELESS_REVISIONS, Revision
from portbook.protocol.session import Session, negotiate
from portbook.tools.catalog import Catalog
from portbook.tools.spec import is_slug
from portbook.version import __version__
from portbook.wire.jsonrpc import (
    Id,
    refusal_frame,
    refuse_structure,
    result_frame,
    violations,
)

__all__ = ["META_REVISION", "Exchange", "Mode", "Official"]

# Where a call's result envelope rides.
META_ENVELOPE: Final = "portbook/envelope"
META_REVISION: Final = "io.modelcontextprotocol/protocolVersion"
_META_SERVER: Final = "io.modelcontextprotocol/serverInfo"
_SERVER: Final[JSONObject] = {"name": "portbook", "version": __version__}

# Tools are fixed while a process runs; a new process may have others.
_CACHE_MS: Final = 60_000

_UNUSABLE: Final = Id(b"null", is_present=True, problem="unusable")

Mode = Literal["enforce", "warn", "off"]
Emit = Callable[[bytes], None]


class Exchange(NamedTuple):
    """A message on its way through: the call it is, and what is needed to answer it."""

    call: Call
    revision: Revision
    is_settled: bool
    """Whether the revision was agreed on or named, and not only assumed."""
    method: str
    identifier: Id


class Official:
    """Reads and writes MCP."""

    def __init__(
        self,
        catalog: Catalog,
        validator: SchemaValidator,
        *,
        incoming: Mode = "enforce",
        outgoing: Mode = "enforce",
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._catalog = catalog
        self._listing = ToolListing(catalog, self._is_listable)
        self._validator = validator
        self._incoming: Mode = incoming
        self._outgoing: Mode = outgoing
        self._warn = warn
        self._handlers: dict[str, Callable[[JSONObject, Revision, Caller], JSONObject]] = {
            "initialize": _initialize,
            "ping": lambda params, revision, caller: {},
            "server/discover": _discover,
            "tools/list": self._list_tools,
        }

    def recognises(self, message: JSONObject, session: Session) -> bool:
        """Return whether `message` is meant as MCP: by its method, its `_meta`, or what came before it."""
        method = message.get("method")
        if session.revision is not None or not isinstance(method, str):
            return True
        return "/" in method or method in ("initialize", "ping") or META_REVISION in _meta(message)

    def read(
        self, message: JSONObject, identifier: Id, arrival: Arrival, session: Session, emit: Emit
    ) -> Exchange:
        """Return the message as a call; where a rung fails, as a call with that flaw."""
        flaw = refuse_structure(message, identifier) or _refuse_id(message)
        revision, refusal = _revision_of(message, session)
        method = message.get("method")
        name = method if isinstance(method, str) else ""
        flaw = flaw or refusal or self._refuse(message, name, revision, session)
        call = self._call(message, name, revision, arrival, flaw, emit)
        if flaw is not None and any(finding.pointer == "/id" for finding in flaw.findings):
            identifier = _UNUSABLE  # an answer may not carry what a request may not
        is_settled = session.revision is not None or META_REVISION in _meta(message)
        return Exchange(call, revision, is_settled, name, identifier)

    def _refuse(
        self, message: JSONObject, method: str, revision: Revision, session: Session
    ) -> Refused | None:
        known = method_of(method, revision.name)
        is_served = method == "tools/call" or method in self._handlers
        if known is None or known.sender is Sender.SERVER or not (is_served or known.is_notification):
            return Refused(Reason.UNKNOWN_METHOD)
        if not known.is_notification and "id" not in message:
            return Refused(Reason.NOT_JSONRPC, (Finding("/id", "a request needs one", "required", ""),))
        if self._incoming != "off" and (findings := self._validator.findings(method, message, revision.name)):
            if self._incoming == "enforce":
                is_frame = any(finding.pointer in ("/id", "/jsonrpc", "/method") for finding in findings)
                return Refused(Reason.NOT_JSONRPC if is_frame else Reason.BAD_PARAMS, findings)
            self._warn(f"incoming {method} breaks {revision.name}: {_first(findings)}")
        if method == "initialize" and session.revision is not None:
            return Refused(Reason.NOT_JSONRPC, (Finding("/method", "already initialised", "session", ""),))
        return None

    def _call(
        self,
        message: JSONObject,
        method: str,
        revision: Revision,
        arrival: Arrival,
        flaw: Refused | None,
        emit: Emit,
    ) -> Call:
        params = _object(message.get("params"))
        meta = _object(params.get("_meta"))
        arguments = _object(params.get("arguments"))
        name = params.get("name")
        tool = name if method == "tools/call" and isinstance(name, str) and is_slug(name) else None
        handler = self._handlers.get(method)
        own_trace = trace_of(meta.get("traceparent"))
        controls = controls_of(meta)
        return Call(
            arrival=arrival,
            method=method if 0 < len(method) <= 128 else None,
            tool=tool,
            arguments=arguments,
            input_bytes=len(json_bytes(arguments)) if method == "tools/call" else 0,
            context=Context(
                step_id=1 if controls.step is None else controls.step,
                attempt=controls.attempt or 1,
                session=controls.session,
                correlation=controls.correlation,
            ),
            trace=own_trace or trace_of(arrival.traceparent),
            content={"method": method, "params": cast("JSON", params)},
            flaw=flaw,
            contract=revision.name,
            handler=None if handler is None else partial(handler, params, revision),
            seal=partial(self._seal, method, tool, revision),
            report=self._reporter(meta.get("progressToken"), revision, emit),
            approval=controls.approval,
            wait_ms=controls.wait_ms,
            wish=Wish(cast("JSON", meta)) if method == "tools/call" else None,
        )

    def _seal(
        self,
        method: str,
        tool: str | None,
        revision: Revision,
        result: Any,
        body: bytes,
        envelope: JSONObject | None,
    ) -> bytes:
        """Return a result as this revision has it, checked as what leaves.

        Raises `Failed` where the official schema does not allow it.
        """
        if method == "tools/call":
            found = self._catalog.find(tool or "")
            assert found is not None
            result = tool_result(found, result, body, revision)
            if envelope is not None:  # beside the result, so that it still satisfies the tool's outputSchema
                result["_meta"] = {META_ENVELOPE: envelope}
            body = json_bytes(result)
        if self._outgoing != "off" and (
            findings := self._validator.findings(method + RESULT, result, revision.name)
        ):
            if self._outgoing == "enforce":
                raise Failed(Reason.BAD_RESULT, findings)
            self._warn(f"outgoing {method} breaks {revision.name}: {_first(findings)}")
        return body

    def write(self, exchange: Exchange, outcome: Outcome) -> bytes:
        """Return the answer to `exchange`."""
        if isinstance(outcome, Done):
            return result_frame(exchange.identifier.token, outcome.wire)
        revision = exchange.revision
        since = outcome.row.told_to_model_since
        if exchange.method == "tools/call" and since and revision.name >= since:
            return result_frame(exchange.identifier.token, json_bytes(_told_to_model(outcome, revision)))
        return self.write_error(outcome, exchange.identifier, revision if exchange.is_settled else None)

    def write_error(self, ending: Ending, identifier: Id, revision: Revision | None) -> bytes:
        """Return an error as MCP has it, without an id where that is unknown and the revision allows."""
        is_known = identifier.is_present and identifier.problem is None
        may_omit = revision is not None and revision.may_omit_id
        return refusal_frame(ending, None if may_omit and not is_known else identifier.token)

    def _list_tools(self, params: JSONObject, revision: Revision, caller: Caller) -> JSONObject:
        cursor = params.get("cursor")
        seen = [
            tool for tool in self._listing.of(revision) if matches(caller.tools, cast("str", tool["name"]))
        ]
        tools, following = page_of(seen, cursor if isinstance(cursor, str) else None)
        result: JSONObject = {"tools": cast("JSON", tools)}
        if following is not None:
            result["nextCursor"] = following
        return _as_page(result, revision)

    def _is_listable(self, tool: JSONObject, revision: Revision) -> bool:
        if self._outgoing != "enforce":
            return True
        page = _as_page({"tools": [tool]}, revision)
        findings = self._validator.findings("tools/list" + RESULT, page, revision.name)
        if findings:
            self._warn(f"tool {tool['name']!r} is not listed in {revision.name}: {_first(findings)}")
        return not findings

    def _reporter(self, token: JSON, revision: Revision, emit: Emit) -> Report | None:
        if token is None:
            return None

        def report(progress: float, total: float | None, message: str | None) -> None:
            params: JSONObject = {"progressToken": token, "progress": progress}
            if total is not None:
                params["total"] = total
            if message is not None:
                params["message"] = message
            notification: JSONObject = {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": params,
            }
            if self._outgoing == "enforce":
                self._validator.validate("notifications/progress", notification, revision.name)
            emit(json_bytes(notification))

        return report


def _refuse_id(message: JSONObject) -> Refused | None:
    """Return the refusal of an id that JSON-RPC allows and MCP does not: a number that is not whole."""
    identifier = message.get("id", 0)
    if isinstance(identifier, float) and not identifier.is_integer():
        return Refused(
            Reason.NOT_JSONRPC, (Finding("/id", "must be a string or a whole number", "type", ""),)
        )
    return None


def _revision_of(message: JSONObject, session: Session) -> tuple[Revision, Refused | None]:
    """Return the revision that `message` is in, or the one to answer in and why it is in none.

    1. The request names one itself: it must be a revision without a handshake.
    2. `initialize` names what it would like; the rest of it is checked by what we will agree on.
    3. The connection has agreed on one.
    4. `ping` may come before that.
    """
    meta = _meta(message)
    if META_REVISION in meta:
        named = meta[META_REVISION]
        if not isinstance(named, str):
            pointer = f"/params/_meta/{META_REVISION.replace('/', '~1')}"
            return REVISIONS[STATELESS_REVISIONS[-1]], Refused(
                Reason.BAD_PARAMS, (Finding(pointer, "expected string", "type", ""),)
            )
        if named in STATELESS_REVISIONS:
            return REVISIONS[named], None
        details = {"requested": named[:64], "supported": list(STATELESS_REVISIONS)}
        return REVISIONS[STATELESS_REVISIONS[-1]], Refused(Reason.UNSUPPORTED_REVISION, details=details)
    if message.get("method") == "initialize" and session.revision is None:
        wanted = _object(message.get("params")).get("protocolVersion")
        return negotiate(wanted if isinstance(wanted, str) else ""), None
    if session.revision is not None:
        return session.revision, None
    if message.get("method") == "ping" or "id" not in message:
        return NEWEST_HANDSHAKE, None
    finding = Finding("/params/_meta", f"send initialize first, or name {META_REVISION}", "required", "")
    return NEWEST_HANDSHAKE, Refused(Reason.BAD_PARAMS, (finding,))


def _initialize(params: JSONObject, revision: Revision, caller: Caller) -> JSONObject:
    return {"protocolVersion": revision.name, "capabilities": {"tools": {}}, "serverInfo": dict(_SERVER)}


def _discover(params: JSONObject, revision: Revision, caller: Caller) -> JSONObject:
    result: JSONObject = {
        "supportedVersions": list(STATELESS_REVISIONS),
        "capabilities": {"tools": {}},
        "_meta": {_META_SERVER: dict(_SERVER)},
    }
    return _cacheable(result, "public")


def _as_page(result: JSONObject, revision: Revision) -> JSONObject:
    return _cacheable(result, "private") if revision.has_result_type else result


def _cacheable(result: JSONObject, scope: str) -> JSONObject:
    return {**result, "resultType": "complete", "ttlMs": _CACHE_MS, "cacheScope": scope}


def _told_to_model(ending: Ending, revision: Revision) -> JSONObject:
    """Return a refusal or failure as a result: words for the model, data for programs."""
    findings = ending.findings if ending.row.stage.is_senders_fault else ()
    lines = [
        ending.row.sentence,
        *(f"{finding.pointer or '(root)'}: {finding.message}" for finding in findings[:20]),
        *(f"{name}: {value}" for name, value in ending.details.items()),
    ]
    refusal: JSONObject = {
        "reason": ending.reason.value,
        "violations": cast("JSON", violations(ending) if findings else []),
        "retryable": ending.is_retryable,
        "policy_violation": ending.row.rest == "POLICY_VIOLATION",
        **cast("JSONObject", ending.details),
    }
    result: JSONObject = {
        "content": [{"type": "text", "text": "\n".join(lines)}],
        "isError": True,
        "_meta": {"portbook/refusal": refusal},
    }
    if ending.envelope is not None:
        cast("JSONObject", result["_meta"])[META_ENVELOPE] = cast("JSON", ending.envelope)
    return {**result, "resultType": "complete"} if revision.has_result_type else result


def _first(findings: tuple[Finding, ...]) -> str:
    return f"{findings[0].pointer or '(root)'}: {findings[0].message}"


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _meta(message: JSONObject) -> JSONObject:
    return _object(_object(message.get("params")).get("_meta"))
