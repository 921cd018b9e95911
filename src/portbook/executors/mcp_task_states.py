"""States of a server's task in the tasks extension, checked: the official schema has what is in them alone.

Pure: no I/O.
"""

from __future__ import annotations

from typing import Final, cast

from portbook.errors import Finding
from portbook.model import JSONObject
from portbook.protocol.conformance import INPUT_REQUIRED
from portbook.upstreams.answer_checks import BadAnswer, RpcError
from portbook.upstreams.connection import UpstreamConnection

__all__ = ["asked_in", "require_state", "result_of_state"]

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
