"""How a call ended, as a test wants to see it: the value or the reason, and all that was left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from portbook.errors import REASONS, Reason
from portbook.testing.inquiries import Inquiry
from portbook.testing.memory_log import Noted

__all__ = ["CallResult", "LogMessage", "NoResult", "Progress", "Violation", "result_of"]

# Members of a refusal that have a field of their own.
_TOLD: Final = ("hint", "policy_violation", "reason", "retryable", "violations")


class Violation(NamedTuple):
    """One thing that is wrong with the arguments, or with the result."""

    pointer: str
    """Where: a JSON Pointer (RFC 6901); the root is the empty string."""
    message: str
    """What is wrong there."""


class Progress(NamedTuple):
    """How far a tool said that it had come."""

    progress: float
    """So much of the total."""
    total: float | None = None
    """How much there is, where the tool said so."""
    message: str | None = None
    """What it said about it."""


class LogMessage(NamedTuple):
    """What a tool said for its caller's log."""

    level: str
    """`debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`."""
    data: Any
    """What it said."""
    logger: str | None = None
    """The name that it said it under."""


class NoResult(AssertionError):
    """A call that has no value, because it was refused or failed; the message says why."""

    def __init__(self, result: CallResult) -> None:
        lines = [f"{result.name}: {result.reason}: {result.message}"]
        lines += [f"  {pointer or '(root)'}: {message}" for pointer, message in result.violations]
        if result.decision in ("deny", "ask"):
            lines.append(f"  rule: {result.rule}")
        super().__init__("\n".join(lines))
        self.result = result


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CallResult:
    """How a call ended: with a value, or with a reason; and all that it left behind."""

    name: str
    """The tool, the address of the resource, or the prompt."""
    reason: str | None
    """Why there is no value, as docs/reference/reasons.md lists it: `BAD_ARGUMENTS`. None where it went
    well."""
    message: str
    """The reason in a sentence, or the tool's own words where it raised `ToolError`; empty where it went
    well."""
    violations: list[Violation]
    """What is wrong with the arguments or the result, place by place."""
    details: dict[str, Any]
    """What the caller is told beside the reason: `approval_id`, `retry_after_s`, `why`."""
    decision: str | None
    """What policy said: `allow`, `ask` or `deny`; None where the call did not get so far."""
    rule: str | None
    """The name of the rule that said it."""
    executed: bool
    """Whether the tool ran, or may have run."""
    is_redacted: bool
    """Whether a secret was taken out of the value."""
    approval_id: str | None
    """The approval that the call needs, or ran under."""
    progress: list[Progress]
    """How far the tool said that it had come, in order."""
    logs: list[LogMessage]
    """What the tool logged, of every level."""
    asked: list[Inquiry]
    """What the tool asked, in order."""
    exception: Exception | None
    """What the tool raised, where that was no `ToolError`."""
    envelope: dict[str, Any] | None
    """The result envelope, where the settings or the call's `_meta` want one."""
    records: list[dict[str, Any]]
    """The records that the call left: one, or one for each round of a tool that asks."""
    executions: list[dict[str, Any]]
    """The same as the execution log has them, with the caller, the decision and the rule."""
    answer: dict[str, Any]
    """The whole answer, as an MCP client gets it."""
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
        """The texts that a model reads, one a line: of a result, of a refusal, a resource or a prompt."""
        result = self.answer.get("result", {})
        found: list[Any] = result.get("contents") or result.get("content") or []
        found += [message["content"] for message in result.get("messages", ())]
        return "\n".join(block["text"] for block in found if "text" in block) or self.message

    @property
    def record(self) -> dict[str, Any]:
        """The last of the records."""
        return self.records[-1]

    @property
    def execution(self) -> dict[str, Any]:
        """The last of the records of the execution log."""
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
    rule: str | None = execution["rule"]
    found: list[dict[str, Any]] = [] if error is None else error["violations"]
    return CallResult(
        name=name,
        reason=None if error is None else error["reason"],
        message="" if error is None else told.get("error") or REASONS[Reason(error["reason"])].sentence,
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


def _told_as(method: str, noted: Noted) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", each["params"]) for each in noted.messages if each["method"] == method]


def _progress(params: dict[str, Any]) -> Progress:
    return Progress(params["progress"], params.get("total"), params.get("message"))


def _log_message(params: dict[str, Any]) -> LogMessage:
    return LogMessage(params["level"], params["data"], params.get("logger"))
