"""Follows a task that an MCP server created for a call, to its result.

In 2026-07-28 a server decides by itself that a call is a task, and is asked how it is doing. In 2025-11-25
it says of a tool that it runs as a task alone, or can; then one request waits for the result. The caller
gets a task of ours, if its client knows tasks; otherwise the call waits. What the task asks goes to the
caller's client, and a call that is cancelled cancels the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, cast

from portbook.errors import Failed, Finding, Reason
from portbook.model import JSON, Client, JSONObject, Run
from portbook.protocol.message_validation import INPUT_REQUIRED
from portbook.protocol.revisions_and_methods import method_of
from portbook.tools.upstream_entries import UpstreamEntry
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.message_checks_and_meta import (
    BadAnswer,
    RpcError,
    meta_for,
)
from portbook.upstreams.running_call import RunningCall
from portbook.upstreams.transport import NotSent

__all__ = ["asked_in", "begin_result", "follow_task", "require_state", "result_of_state", "runs_as_task"]

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
