"""Messages of a server, checked by the schema of its revision, and the `_meta` of ours. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, cast

from portbook.errors import Finding, Refused
from portbook.model import JSON, JSONObject
from portbook.protocol.extensions import META_CAPABILITIES
from portbook.protocol.message_validation import INPUT_REQUIRED, RESULT, SchemaValidator
from portbook.protocol.negotiation import META_REVISION
from portbook.protocol.revisions_and_methods import REVISIONS, Revision, method_of
from portbook.text.named_tuple import NamedTuple
from portbook.version import __version__
from portbook.wire.lines_and_size_limit import OVERSIZE, Frame
from portbook.wire.parsing import parse

__all__ = [
    "CLIENT_INFO",
    "NO_MESSAGE",
    "TASK",
    "UNREADABLE",
    "AnswerChecks",
    "BadAnswer",
    "RpcError",
    "UnreadableAnswer",
    "client_capabilities",
    "is_created_task",
    "messages_in",
    "meta_for",
    "related_task",
    "without_reserved",
]

# What a server wrote, as messages: lines that are none are told apart from answers that are broken. Pure.
#
# What programs print beside their messages, such as a banner, is dropped. What was meant as an answer and
# cannot be read fails the request that it answers.

# What the operator is told of a line that is dropped.
NO_MESSAGE: Final = "it wrote a line that is no message"

# An id in an answer that cannot be parsed, and how far from its ends it is looked for.
_ID: Final = re.compile(rb'"id"\s*:\s*([0-9]{1,15})(?![0-9.eE])')
_ENDS: Final = 200
# How a message can begin; what programs print begins otherwise, and costs no parsing.
_BEGINS: Final = (b"{", b"[")


class UnreadableAnswer(NamedTuple):
    """What was meant as an answer and cannot be read."""

    problem: str
    named: frozenset[int] = frozenset()
    """The ids that it names."""


def messages_in(frame: Frame, *, has_batches: bool) -> list[Any] | UnreadableAnswer:
    """Return the messages of one line or event; there is none in what is not a message."""
    if frame is OVERSIZE:
        return UnreadableAnswer("an answer is too large")
    if frame.lstrip()[:1] not in _BEGINS:
        return [None]
    is_meant = b'"jsonrpc"' in frame  # other lines are what programs print
    try:
        message = parse(frame)
    except Refused as refused:
        if not is_meant:
            return [None]
        problem = "; ".join(("an answer is not JSON", *(each.message for each in refused.findings)))
        return UnreadableAnswer(problem, _ids_in(frame))
    if not isinstance(message, list):
        return [message]
    if is_meant and not has_batches:
        return UnreadableAnswer("an answer is a batch, which its revision does not have")
    return message


def _ids_in(frame: bytes) -> frozenset[int]:
    ends = frame[:_ENDS] + b" " + frame[-_ENDS:]
    return frozenset(int(number) for number in _ID.findall(ends))


# Answers by the schema of their revision.

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


# The `_meta` of requests to a server: ours alone, whatever the caller sent.

CLIENT_INFO: Final[JSONObject] = {"name": "portbook", "version": __version__}

_RESERVED: Final = "io.modelcontextprotocol/"
# What we say of a call ourselves: refusals, envelopes.
_OURS: Final = "portbook/"
_META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
_META_TASK: Final = "io.modelcontextprotocol/related-task"
_META_LEVEL: Final = "io.modelcontextprotocol/logLevel"

# What we can pass on to a caller's client, as a client declares it.
_CAPABILITIES: Final[dict[str, JSONObject]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}


def client_capabilities(may_ask: frozenset[str]) -> JSONObject:
    """Return the capabilities that we declare to a server that keeps a connection."""
    return {name: traits for name, traits in _CAPABILITIES.items() if name in may_ask}


def meta_for(
    revision: Revision,
    *,
    capabilities: JSONObject | None = None,
    traceparent: str | None = None,
    progress_token: int | None = None,
    level: str | None = None,
) -> JSONObject:
    """Return the `_meta` of a request; `capabilities` and `level` where each request declares them."""
    meta: JSONObject = {}
    if not revision.has_handshake:
        meta[META_REVISION] = revision.name
        meta[_META_CLIENT] = CLIENT_INFO
        meta[META_CAPABILITIES] = capabilities or {}
        if level is not None:
            meta[_META_LEVEL] = level
    if traceparent is not None:
        meta["traceparent"] = traceparent
    if progress_token is not None:
        meta["progressToken"] = progress_token
    return meta


def related_task(params: JSON) -> str | None:
    """Return the task that a message of a server belongs to, None where it names none."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    related = meta.get(_META_TASK) if isinstance(meta, dict) else None
    task = related.get("taskId") if isinstance(related, dict) else None
    return task if isinstance(task, str) else None


def without_reserved(meta: JSON) -> JSONObject:
    """Return what a server's `_meta` says that is not part of the protocol between it and us, or ours."""
    if not isinstance(meta, dict):
        return {}
    return {name: value for name, value in meta.items() if not name.startswith((_RESERVED, _OURS))}
