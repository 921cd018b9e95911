"""`UpstreamRequest`: what a call asks of a server, in the server's words. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from portbook.executors.mcp_server_tasks import runs_as_task
from portbook.model import JSON, Client, JSONObject, Run
from portbook.protocol.extensions import META_CAPABILITIES, TASKS, declares
from portbook.protocol.negotiation import LEVELS
from portbook.tools.catalog import Tool
from portbook.tools.upstream_entry import UpstreamEntry
from portbook.tools.uri_templates import UriTemplate
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.message_meta import meta_for
from portbook.wire.trace_context import traceparent_of

__all__ = ["UpstreamRequest", "capabilities_of", "params_of"]

_METHODS: Final = {
    "tool": "tools/call",
    "resource": "resources/read",
    "prompt": "prompts/get",
    "completion": "completion/complete",
}


@dataclass(slots=True)
class UpstreamRequest:
    """A call on its way: what it calls, for whom, over which connection."""

    tool: Tool
    entry: UpstreamEntry
    arguments: JSONObject
    run: Run
    connection: UpstreamConnection
    may_ask: frozenset[str]

    @property
    def method(self) -> str:
        """Return the method that calls it."""
        return _METHODS[self.tool.spec.kind]


def params_of(
    way: UpstreamRequest, number: int, answers: Mapping[str, JSONObject] | None, state: str | None
) -> JSONObject:
    """Return the params of the request of this number, with the answers and the state of a later round."""
    wanted = _wanted(way)
    if runs_as_task(way.entry, way.connection, is_wanted=_knows_tasks(way.run.reach())):
        wanted["task"] = {"ttl": way.run.timeout_ms}
    meta = _meta(way, number)
    if meta:
        wanted["_meta"] = meta
    if answers is not None and not way.connection.revision.has_handshake:
        wanted["inputResponses"] = cast("JSON", dict(answers))
    if state is not None:
        wanted["requestState"] = state
    return wanted


def capabilities_of(way: UpstreamRequest) -> JSONObject:
    """Return what the caller's client can do, as far as the server may use it.

    Tasks are ours to follow, so a client that keeps a connection need not know them; one that answers later
    says for itself whether it takes a task for an answer.
    """
    client = way.run.reach()
    declared = {} if client is None else client.capabilities
    mirrored = {name: declared[name] for name in sorted(way.may_ask) if name in declared}
    if client is None or not client.answers_later or _knows_tasks(client):
        mirrored["extensions"] = {TASKS: {}}
    return mirrored


def _knows_tasks(client: Client | None) -> bool:
    """Return whether a client takes a task for an answer."""
    return client is not None and declares({META_CAPABILITIES: client.capabilities}, TASKS)


def _wanted(way: UpstreamRequest) -> JSONObject:
    """Return what is requested, in the words of the server."""
    spec, entry, arguments = way.tool.spec, way.entry, way.arguments
    if spec.kind == "resource":
        uri = entry.name
        return {"uri": UriTemplate(uri).expand(arguments) if UriTemplate.is_one(uri) else uri}
    if spec.kind == "completion":
        reference: JSONObject = (
            {"type": "ref/prompt", "name": entry.name}
            if spec.completes == "prompt"
            else {"type": "ref/resource", "uri": entry.name}
        )
        typed: JSONObject = {name: arguments[name] for name in ("name", "value")}
        if "given" not in arguments or not way.connection.revision.has_completion_context:
            return {"ref": reference, "argument": typed}
        return {"ref": reference, "argument": typed, "context": {"arguments": arguments["given"]}}
    return {"name": entry.name, "arguments": arguments}


def _meta(way: UpstreamRequest, number: int) -> JSONObject:
    run, revision = way.run, way.connection.revision
    level: str | None = None
    client = None if revision.has_handshake else run.reach()
    if client is not None:
        level = next((each for each in LEVELS if client.hears(each)), None)
    return meta_for(
        revision,
        capabilities=None if revision.has_handshake else capabilities_of(way),
        traceparent=traceparent_of(run.identity),
        progress_token=number if run.report is not None else None,
        level=level,
    )
