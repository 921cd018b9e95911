"""What a call asks of an MCP server, in the server's words, and its answer as a result or a failure.

`UpstreamRequest` is the request. A server may answer with a task, which is followed to its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from portbook.errors import REASONS, Ending, Failed, Finding, Reason, Refused
from portbook.model import JSON, Client, JSONObject, Run
from portbook.protocol.extensions import META_CAPABILITIES, TASKS, declares
from portbook.protocol.message_validation import INPUT_REQUIRED
from portbook.protocol.negotiation import LEVELS
from portbook.protocol.revisions_and_methods import Revision, method_of
from portbook.tools.catalog import Tool
from portbook.tools.client_capabilities import known_capabilities
from portbook.tools.upstream_entries import UpstreamEntry
from portbook.tools.uri_templates import UriTemplate
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.message_checks_and_meta import (
    UNREADABLE,
    BadAnswer,
    RpcError,
    meta_for,
    without_reserved,
)
from portbook.upstreams.running_call import RunningCall
from portbook.upstreams.transport import ConnectionLost, NotSent
from portbook.wire.trace_context import traceparent_of

__all__ = [
    "UpstreamRequest",
    "asked_in",
    "begin_result",
    "capabilities_of",
    "ending_by",
    "follow_task",
    "params_of",
    "require_own_addresses",
    "require_state",
    "result_in",
    "result_of_state",
    "runs_as_task",
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


# Follows a task that an MCP server created for a call, to its result.
#
# In 2026-07-28 a server decides by itself that a call is a task, and is asked how it is doing. In
# 2025-11-25 it says of a tool that it runs as a task alone, or can; then one request waits for the result.
# The caller gets a task of ours, if its client knows tasks; otherwise the call waits. What the task asks
# goes to the caller's client, and a call that is cancelled cancels the task.

# States of a server's task in the tasks extension, checked: the official schema has what is in them alone.

_STATUSES: Final = frozenset({"working", "input_required", "completed", "failed", "cancelled"})
_COMPLETE: Final = "complete"


def require_state(state: JSONObject) -> None:
    """Check that a state is one. Raises `BadAnswer`."""
    status = state.get("status")
    if not isinstance(status, str) or status not in _STATUSES:
        raise _bad("/status", "must be a status of a task")


def asked_in(connection: UpstreamConnection, state: JSONObject) -> dict[str, JSONObject]:
    """Return what a task asks for, by the keys of the answers. Raises `BadAnswer` where it is no question."""
    requests = state.get("inputRequests") or {}
    if not isinstance(requests, dict) or not all(
        isinstance(each, dict) and isinstance(each.get("method"), str) for each in requests.values()
    ):
        raise _bad("/inputRequests", "must be requests by their keys")
    connection.require_result("tools/call", {"resultType": INPUT_REQUIRED, "inputRequests": requests})
    return cast("dict[str, JSONObject]", requests)


def result_of_state(connection: UpstreamConnection, state: JSONObject) -> JSONObject:
    """Return the result of a task that has ended.

    Raises `RpcError` where it failed, and `BadAnswer` where its ending is none.
    """
    result, error = state.get("result"), state.get("error")
    if state["status"] == "completed":
        if not isinstance(result, dict):
            raise _bad("/result", "must be an object")
        if result.get("resultType", _COMPLETE) != _COMPLETE:
            raise _bad("/result/resultType", "must be complete: the task has ended")
        whole: JSONObject = {"resultType": _COMPLETE, **result}
        connection.require_result("tools/call", whole)
        return whole
    if state["status"] == "failed":
        code, words = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, None)
        if type(code) is not int or not isinstance(words, str):
            raise _bad("/error", "must have a code and a message")
        raise RpcError(code, words, cast("JSONObject", error).get("data"))
    raise _bad("/status", "the task ended without a result")


def _bad(pointer: str, message: str) -> BadAnswer:
    return BadAnswer((Finding(pointer, message, "task", ""),))


_RESULT: Final = "tasks/result"

_REQUEST_S: Final = 30.0
_MIN_POLL_S: Final = 0.02
_MAX_POLL_S: Final = 2.0

Ask = Callable[[dict[str, JSONObject]], Awaitable[dict[str, JSONObject]]]


async def follow_task(
    connection: UpstreamConnection,
    created: JSONObject,
    client: Client | None,
    ask: Ask,
    capabilities: JSONObject,
    timeout_s: float,
) -> JSONObject:
    """Return the result of a task; `ask` asks the client what the task needs.

    Raises `Failed` where it fails or takes too long, and as a request does.
    """
    if client is not None:
        client.detach()
    task, state = str(created.get("taskId")), created
    meta = meta_for(connection.revision, capabilities=capabilities)
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    try:
        require_state(state)
        while state.get("status") in ("working", "input_required"):
            if state.get("status") == "input_required":
                answers = cast("JSON", await ask(asked_in(connection, state)))
                until = loop.time() + timeout_s  # a person may take long to answer
                await _request(connection, "tasks/update", task, meta, {"inputResponses": answers})
            _require_time(until)
            await asyncio.sleep(_pause_s(state))
            state = await _request(connection, "tasks/get", task, meta)
            require_state(state)
    except BaseException:
        connection.request_aside("tasks/cancel", {"taskId": task, "_meta": meta})
        raise
    return result_of_state(connection, state)


def runs_as_task(entry: UpstreamEntry, connection: UpstreamConnection, *, is_wanted: bool) -> bool:
    """Return whether a server of 2025-11-25 is to run a tool as a task.

    That is one which it runs so alone; and one which it can run so, where the caller knows tasks.
    """
    execution = entry.definition.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    is_possible = support == "optional" and "tasks" in connection.capabilities
    if support != "required" and not (is_possible and is_wanted):
        return False
    return method_of(_RESULT, connection.revision.name) is not None


def begin_result(
    connection: UpstreamConnection, call: RunningCall, created: JSONObject, run: Run
) -> RunningCall:
    """Request the result of the task that a `call` has created; it is answered when the task has ended.

    Raises `Failed` where nothing more can be sent.
    """
    client = run.reach()
    if client is not None:
        client.detach()
    task = str(cast("JSONObject", created["task"])["taskId"])
    try:
        waiting = connection.begin(_RESULT, lambda _: {"taskId": task}, run, task=task)
    except NotSent as error:  # the task goes on, so this is no refusal
        raise Failed(Reason.UPSTREAM_ERROR, happened=str(error)) from None
    except BadAnswer as error:
        raise Failed(Reason.BAD_RESULT, error.findings) from None
    waiting.token = call.token
    return waiting


def _require_time(until: float) -> None:
    if asyncio.get_running_loop().time() > until:
        raise Failed(Reason.TIMEOUT)


def _pause_s(state: JSONObject) -> float:
    interval = state.get("pollIntervalMs")
    wanted = interval / 1000 if isinstance(interval, int | float) else _MAX_POLL_S
    return min(max(wanted, _MIN_POLL_S), _MAX_POLL_S)


async def _request(
    connection: UpstreamConnection, method: str, task: str, meta: JSONObject, more: JSONObject | None = None
) -> JSONObject:
    return await connection.request(method, {"taskId": task, **(more or {}), "_meta": meta}, _REQUEST_S)
