"""The outcome of a call for a test: the value or the reason, with the records and messages of the call."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, cast

from portbook.audit.memory_sink import MemorySink
from portbook.errors import REASONS, Reason
from portbook.testing.questions_and_answers import Inquiry

__all__ = [
    "CallResult",
    "LogMessage",
    "NoResult",
    "Noted",
    "Progress",
    "RecordsByCall",
    "Violation",
    "noting",
    "result_of",
]

# Members of a refusal that have a field of their own.
_TOLD: Final = ("code", "data", "hint", "policy_violation", "reason", "retryable", "violations")


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with the arguments, or with the result."""

    pointer: str
    """Where: a JSON Pointer (RFC 6901); the root is the empty string."""
    message: str
    """What is wrong there."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress report of a tool."""

    progress: float
    """How much of the total is done."""
    total: float | None = None
    """The total, if the tool reported one."""
    message: str | None = None
    """The text of the report."""


@dataclass(frozen=True, slots=True)
class LogMessage:
    """One log message of a tool."""

    level: str
    """`debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`."""
    data: Any
    """The message: any JSON value."""
    logger: str | None = None
    """The name of the logger, if the tool gave one."""


class NoResult(AssertionError):
    """A call that has no value, because it was refused or failed; the message says why."""

    def __init__(self, result: CallResult) -> None:
        lines = [f"{result.name}: {result.reason}: {result.message}"]
        lines += [f"  {each.pointer or '(root)'}: {each.message}" for each in result.violations]
        if result.decision in ("deny", "ask"):
            lines.append(f"  rule: {result.rule}")
        super().__init__("\n".join(lines))
        self.result = result


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CallResult:
    """The outcome of a call: its value, or the reason why there is none, with its records and messages."""

    name: str
    """The tool, the address of the resource, or the prompt."""
    reason: str | None
    """Why there is no value: one of docs/reference/reasons.md, such as `BAD_ARGUMENTS`. None if the call
    succeeded."""
    message: str
    """The reason in a sentence, or the text of the tool's `ToolError`. Empty if the call succeeded."""
    code: str | None
    """The code of the tool's own error: of its `ToolError`, or of any exception that has one."""
    data: Any
    """The data of the tool's `ToolError`, redacted."""
    is_retryable: bool
    """Whether the caller is told that a retry may help."""
    violations: list[Violation]
    """What is wrong with the arguments or the result, and where."""
    details: dict[str, Any]
    """What else the caller is told, such as `approval_id`, `retry_after_s` or `why`."""
    decision: str | None
    """The decision of policy: `allow`, `ask` or `deny`. None if the call was refused before it."""
    rule: str | None
    """The name of the rule that decided."""
    executed: bool
    """Whether the tool ran, or may have run."""
    is_redacted: bool
    """Whether a secret was redacted from the value."""
    approval_id: str | None
    """The approval that the call needs, or ran under."""
    progress: list[Progress]
    """The progress reports of the tool, in order."""
    logs: list[LogMessage]
    """The log messages of the tool, at every level."""
    asked: list[Inquiry]
    """The questions of the tool, in order."""
    exception: Exception | None
    """The exception that the tool raised, unless it is a `ToolError`."""
    envelope: dict[str, Any] | None
    """The result envelope, if the settings or the `_meta` of the call ask for one."""
    records: list[dict[str, Any]]
    """The records of the call: one, or one for each round of a tool that asks questions."""
    executions: list[dict[str, Any]]
    """The same records in the execution view, with the caller, the decision and the rule."""
    answer: dict[str, Any]
    """The whole MCP answer."""
    _value: Any

    @property
    def is_ok(self) -> bool:
        """Whether there is a value."""
        return self.reason is None

    @property
    def value(self) -> Any:
        """What the tool returned: JSON, or a list of content where it returns content.

        Of a resource it is the list of its contents, of a prompt the list of its messages.

        Raises `NoResult` where there is none; the exception of the tool is its cause.
        """
        self.raise_for_refusal()
        return self._value

    @property
    def text(self) -> str:
        """The text that a model reads: of a result, a refusal, a resource or a prompt."""
        result = self.answer.get("result", {})
        found: list[Any] = result.get("contents") or result.get("content") or []
        found += [message["content"] for message in result.get("messages", ())]
        return "\n".join(block["text"] for block in found if "text" in block) or self.message

    @property
    def record(self) -> dict[str, Any]:
        """The last record of the call."""
        return self.records[-1]

    @property
    def execution(self) -> dict[str, Any]:
        """The last record of the call in the execution view."""
        return self.executions[-1]

    def raise_for_refusal(self) -> CallResult:
        """Return the result itself where there is a value.

        Raises `NoResult` where there is none; the exception of the tool is its cause.
        """
        if self.reason is not None:
            raise NoResult(self) from self.exception
        return self

    def __repr__(self) -> str:
        said = repr(self._value) if self.reason is None else self.reason
        by = f" by {self.rule!r}" if self.decision in ("deny", "ask") and self.reason is not None else ""
        return f"<CallResult {self.name}: {said}{by}>"


def result_of(
    name: str, answer: dict[str, Any], noted: Noted, asked: list[Inquiry], value: Any
) -> CallResult:
    """Return what a call came to: its answer, and what was noted while it ran."""
    record, execution = noted.records[-1], noted.executions[-1]
    error: dict[str, Any] | None = record["error"]
    meta: dict[str, Any] = answer.get("result", {}).get("_meta", {})
    told: dict[str, Any] = answer.get("error", {}).get("data") or meta.get("portbook/refusal", {})
    # Of a prompt or a resource, it is in the data of the error.
    is_stated = error is not None and error["reason"] == Reason.TOOL_ERROR
    own: dict[str, Any] = meta.get("portbook/error", told) if is_stated else {}
    rule: str | None = execution["rule"]
    found: list[dict[str, Any]] = [] if error is None else error["violations"]
    return CallResult(
        name=name,
        reason=None if error is None else error["reason"],
        message="" if error is None else _message(answer, told, error["reason"]),
        code=own.get("code"),
        data=own.get("data"),
        is_retryable=bool(own.get("retryable", told.get("retryable", False))),
        violations=[Violation(each["pointer"], each["message"]) for each in found],
        details={member: each for member, each in told.items() if member not in _TOLD},
        decision=execution["decision"],
        rule=None if rule is None else rule.rpartition(" (")[0],
        executed=error is None or error["executed"],
        is_redacted=execution["redaction_applied"],
        approval_id=execution["approval_id"],
        progress=[_progress(each) for each in _told_as("notifications/progress", noted)],
        logs=[_log_message(each) for each in _told_as("notifications/message", noted)],
        asked=asked,
        exception=noted.faults[-1] if noted.faults else None,
        envelope=meta.get("portbook/envelope"),
        records=noted.records,
        executions=noted.executions,
        answer=answer,
        _value=value,
    )


def _message(answer: dict[str, Any], told: dict[str, Any], reason: str) -> str:
    """Return what the caller is told, in one sentence or two."""
    content: list[dict[str, Any]] = answer.get("result", {}).get("content") or [{}]
    own = told.get("error") or told.get("hint")  # of the tool itself; of an error
    return own or content[0].get("text", "").partition("\n")[0] or REASONS[Reason(reason)].sentence


def _told_as(method: str, noted: Noted) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", each["params"]) for each in noted.messages if each["method"] == method]


def _progress(params: dict[str, Any]) -> Progress:
    return Progress(params["progress"], params.get("total"), params.get("message"))


def _log_message(params: dict[str, Any]) -> LogMessage:
    return LogMessage(params["level"], params["data"], params.get("logger"))


# Records in memory, and which of them belong to which call, even where calls run side by side.


@dataclass(slots=True)
class Noted:
    """What one call left behind while it ran."""

    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    executions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What the server said before its answer."""
    faults: list[Exception] = field(default_factory=list[Exception])
    """What the tool raised."""
    mistakes: list[Exception] = field(default_factory=list[Exception])
    """What the test's own functions raised."""


# Set around a call; the threads and tasks that run for it inherit it.
noting: ContextVar[Noted | None] = ContextVar("portbook_testing_noting", default=None)


class RecordsByCall(MemorySink):
    """Keeps records in lists, and notes them for the call that they are about."""

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Keep both views."""
        super().write(envelope, execution)
        noted = noting.get()
        if noted is not None:
            noted.records.append(self.records[-1])
            noted.executions.append(self.executions[-1])
