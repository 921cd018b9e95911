"""What a call asks of an MCP server, in the server's words, and its answer as a result or a failure.

`UpstreamRequest` is the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from portbook.errors import REASONS, Ending, Failed, Finding, Reason, Refused
from portbook.executors.mcp_server_tasks import runs_as_task
from portbook.model import JSON, Client, JSONObject, Run
from portbook.protocol.extensions import META_CAPABILITIES, TASKS, declares
from portbook.protocol.negotiation import LEVELS
from portbook.protocol.revisions_and_methods import Revision
from portbook.tools.catalog import Tool
from portbook.tools.client_capabilities import known_capabilities
from portbook.tools.upstream_entries import UpstreamEntry
from portbook.tools.uri_templates import UriTemplate
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.message_checks_and_meta import (
    UNREADABLE,
    BadAnswer,
    RpcError,
    meta_for,
    without_reserved,
)
from portbook.upstreams.transport import ConnectionLost, NotSent
from portbook.wire.trace_context import traceparent_of

__all__ = [
    "UpstreamRequest",
    "capabilities_of",
    "ending_by",
    "params_of",
    "require_own_addresses",
    "result_in",
]

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


# From an MCP server's answer to a result or a failure.
#
# A tool's result is kept whole: content, structured content, and what the server says in `_meta` beside the
# protocol. One that `isError` is the tool's own error, whatever its output schema says.

# As much of a server's words as explains an error.
_MAX_WORDS: Final = 2000
# For a resource that does not exist, in each era.
_NOT_FOUND: Final = frozenset(
    REASONS[Reason.UNKNOWN_RESOURCE].mcp.code_in(revision) for revision in ("2025-11-25", "2026-07-28")
)
# What the client lacks is the same to the server and to us: only the client can change it.
_MISSING: Final = REASONS[Reason.MISSING_CAPABILITY].mcp.code_in("")


def result_in(result: JSONObject, tool: Tool) -> Any:
    """Return what the pipeline takes as the result of `tool`.

    Raises `Failed` where the tool reports an error, the content is none although nothing was checked, or the
    file of a skill is not the one that was listed.
    """
    kind = tool.spec.kind
    if kind == "resource":
        return _contents(_objects(result, "contents"), tool)
    if kind == "prompt":
        return _objects(result, "messages")
    if kind == "completion":
        return result.get("completion")
    content = _objects({"content": [], **result}, "content")
    if result.get("isError") is True:
        raise _tool_error(content)
    whole: JSONObject = {"content": cast("JSON", content)}
    if "structuredContent" in result:
        whole["structuredContent"] = result["structuredContent"]
    meta = without_reserved(result.get("_meta"))
    return {**whole, "_meta": meta} if meta else whole


def _objects(result: JSONObject, member: str) -> list[JSONObject]:
    found = result.get(member)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Failed(Reason.BAD_RESULT, (Finding(f"/{member}", "must be a list of objects", "type", ""),))
    return cast("list[JSONObject]", found)


def _contents(contents: list[JSONObject], tool: Tool) -> list[JSONObject]:
    """Return what was read; of a file of a skill, only what the skill's entry promises."""
    entry = tool.spec.upstream
    problem = None if entry is None or entry.file is None else entry.file.problem_in(contents)
    if problem is not None:
        raise Failed(Reason.BAD_RESULT, (Finding("/contents", problem, "digest", ""),))
    return contents


def require_own_addresses(contents: list[JSONObject], is_of_others: Callable[[str], bool]) -> None:
    """Check that no content of a resource claims to be at an address of others. Raises `Failed`."""
    for at, part in enumerate(contents):
        if is_of_others(str(part.get("uri"))):
            finding = Finding(f"/contents/{at}/uri", "is an address of others", "uri", "")
            raise Failed(Reason.BAD_RESULT, (finding,))


def ending_by(
    error: RpcError | BadAnswer | NotSent | ConnectionLost, tool: Tool, revision: Revision
) -> Ending:
    """Return the ending of a call without a usable answer: `Refused` only if nothing of it was sent."""
    if isinstance(error, RpcError):
        return _rpc_failure(error, tool, revision)
    if isinstance(error, BadAnswer):
        first = error.findings[0]
        unread = first.message if first.keyword == UNREADABLE else None
        return Failed(Reason.BAD_RESULT, error.findings, happened=unread)
    if isinstance(error, NotSent):
        return Refused(Reason.UPSTREAM_ERROR, happened=str(error), is_retryable=True)
    return Failed(Reason.UPSTREAM_ERROR, happened=str(error))


def _rpc_failure(error: RpcError, tool: Tool, revision: Revision) -> Failed:
    """Return the failure of a call that its server answered with a JSON-RPC error.

    To our client it is no error of the protocol: that one is between the server and us. What the client
    lacks is said in our words: an error of ours has none of the server's.
    """
    if tool.spec.kind == "resource" and error.code in _NOT_FOUND:
        return Failed(Reason.UNKNOWN_RESOURCE, note=f"the server answered with the error {error.code}")
    if error.code == _MISSING and not revision.has_handshake and isinstance(error.data, dict):
        lacking = known_capabilities(error.data.get("requiredCapabilities"))
        if lacking:
            return Failed(Reason.MISSING_CAPABILITY, details={"requiredCapabilities": lacking})
    details = {"upstream_code": error.code, "detail": error.words[:_MAX_WORDS]}
    happened = f"it answered with the error {error.code}"
    return Failed(Reason.UPSTREAM_ERROR, happened=happened, details=details)


def _tool_error(content: list[JSONObject]) -> Failed:
    texts = [str(block["text"]) for block in content if block.get("type") == "text" and "text" in block]
    details: dict[str, object] = {"upstream_content": content}
    if texts:
        details["error"] = "\n".join(texts)[:_MAX_WORDS]
    return Failed(Reason.TOOL_ERROR, note="the server says isError", details=details)
