"""Checks messages to and from a server by the official schema of its revision. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.protocol.mcp_methods import method_of
from portbook.protocol.message_validation import INPUT_REQUIRED, RESULT, SchemaValidator
from portbook.protocol.revisions import REVISIONS

__all__ = ["TASK", "UNREADABLE", "AnswerChecks", "BadAnswer", "RpcError", "is_created_task"]

# The `resultType` of a result that is a task.
TASK: Final = "task"

# The keyword of a finding about an answer that could not be read at all, in which there are no places.
UNREADABLE: Final = "json"

_NO_VIOLATION: Final[tuple[Finding, ...]] = ()


class BadAnswer(Exception):
    """An answer that breaks the protocol."""

    def __init__(self, findings: tuple[Finding, ...], result: JSONObject | None = None) -> None:
        super().__init__("the answer breaks the protocol")
        self.findings = findings
        self.result = result
        """The result that breaks its schema, where there is one."""


class RpcError(Exception):
    """A JSON-RPC error that a server answered with."""

    def __init__(self, code: int, words: str, data: JSON = None) -> None:
        super().__init__("the server answered with an error")
        self.code = code
        self.words = words
        """What the server says; for the caller, redacted, and never part of a message of ours."""
        self.data = data


class AnswerChecks:
    """The checks of one server."""

    def __init__(self, validator: SchemaValidator, *, is_enforced: bool, warn: Callable[[str], None]) -> None:
        """Check with `validator`; unless `is_enforced`, a violation in an answer is only warned of."""
        self._validator = validator
        self._is_enforced = is_enforced
        self._warn = warn
        self._known: dict[tuple[str, str], Callable[[JSON], bool]] = {}

    def result_in(self, response: JSONObject, method: str, revision: str) -> JSONObject:
        """Return the result of a response to a request of this `method`.

        Raises `RpcError` for an error, and `BadAnswer` for what is neither, or breaks the schema.
        """
        if response.get("jsonrpc") != "2.0":
            raise _bad("/jsonrpc", 'must be "2.0"')
        if "error" in response:
            raise _error_in(response)
        result = response.get("result")
        if not isinstance(result, dict):
            raise _bad("/result", "must be an object")
        self.require(method, result, revision)
        return result

    def require(self, method: str, result: JSONObject, revision: str) -> None:
        """Check the result of a request of this `method`.

        Raises `BadAnswer` where it breaks the schema; where that is not enforced, it is warned of.
        """
        findings = self._findings(method, result, revision)
        if not findings:
            return
        if self._is_enforced:
            raise BadAnswer(findings, result)
        first = findings[0]
        self._warn(f"its answer to {method} breaks {revision}: {first.pointer or '(root)'}: {first.message}")

    def allows_request(self, message: JSONObject, method: str, revision: str) -> tuple[Finding, ...]:
        """Return the violations in a message that is about to be sent."""
        if method_of(method, revision) is None or self._check(method, revision)(message):
            return _NO_VIOLATION
        return self._validator.findings(method, message, revision)

    def is_notification(self, message: JSONObject, method: str, revision: str) -> bool:
        """Return whether the revision has a message of a server, request or notification, and allows it."""
        return method_of(method, revision) is not None and self._check(method, revision)(message)

    def _findings(self, method: str, result: JSONObject, revision: str) -> tuple[Finding, ...]:
        if method_of(method, revision) is None:  # of an extension, which the official schema does not have
            return _NO_VIOLATION
        # Results have types since 2026-07-28; before, that was a word like any other.
        kind = None if REVISIONS[revision].has_handshake else result.get("resultType")
        if kind == TASK and method == "tools/call":  # of the tasks extension, as above
            return _of_task(result)
        has_tasks = method_of("tasks/result", revision) is not None
        if method == "tools/call" and has_tasks and is_created_task(result):
            return _of_task(cast("JSONObject", result["task"]), "/task")
        asks = kind == INPUT_REQUIRED
        if not asks and self._check(method + RESULT, revision)(result):
            return _NO_VIOLATION
        return self._validator.findings(method + RESULT, result, revision)

    def _check(self, message_type: str, revision: str) -> Callable[[JSON], bool]:
        check = self._known.get((revision, message_type))
        if check is None:
            check = self._known[revision, message_type] = self._validator.check_of(message_type, revision)
        return check


def is_created_task(result: JSONObject) -> bool:
    """Return whether an answer is a task in the form of 2025-11-25."""
    return isinstance(result.get("task"), dict) and "content" not in result


def _of_task(task: JSONObject, at: str = "") -> tuple[Finding, ...]:
    """Return the violations in the answer that creates a task."""
    return tuple(
        Finding(f"{at}/{name}", "must be a string", "type", "")
        for name in ("taskId", "status")
        if not isinstance(task.get(name), str)
    )


def _error_in(response: JSONObject) -> Exception:
    error = response["error"]
    if "result" in response:
        return _bad("/error", "not allowed beside a result")
    if not isinstance(error, dict):
        return _bad("/error", "must be an object")
    code, words = error.get("code"), error.get("message")
    if type(code) is not int or not isinstance(words, str):
        return _bad("/error", "must have a code and a message")
    return RpcError(code, words, error.get("data"))


def _bad(pointer: str, message: str) -> BadAnswer:
    return BadAnswer((Finding(pointer, message, "jsonrpc", ""),))
