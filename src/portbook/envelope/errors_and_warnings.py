"""`Problem`: the entries of an envelope's `errors` and `warnings`, built from failures. Pure: no I/O.

Where only an exception, an exit status or standard error is known, the code is `ADAPTER.EXECUTION.FAILED`.
The tool's own codes are preferred. The text of an exception is never included, unless it is a `ToolError`,
whose author means it for the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from portbook.errors import Ending, Failed, Reason, Stage
from portbook.model import JSON, JSONObject
from portbook.provenance.anchors import (
    MAX_NOTE,
    MAX_SOURCE,
    Evidence,
    anchor_at,
    parse_anchor,
    resolves,
)
from portbook.provenance.record_inputs_and_outputs import ARGUMENTS
from portbook.tools.tool_error_text import StatedError, stated_error

__all__ = [
    "BAD_CONTROL",
    "EXECUTION_FAILED",
    "NO_PROVENANCE",
    "OVERSIZE",
    "UNRESOLVED",
    "Problem",
    "Scalar",
    "ending_problem",
    "exception_problem",
    "exit_problem",
    "own_problems",
    "redaction_warnings",
    "stderr_problem",
]

EXECUTION_FAILED: Final = "ADAPTER.EXECUTION.FAILED"

# Portbook's own warnings.
BAD_CONTROL: Final = "ADAPTER.CONTROLS.IGNORED"
NO_PROVENANCE: Final = "ADAPTER.PROVENANCE.OMITTED"
OVERSIZE: Final = "ADAPTER.OUTPUT.OVERSIZE"
_REDACTED: Final = "ADAPTER.OUTPUT.REDACTED"
UNRESOLVED: Final = "ADAPTER.EVIDENCE.UNRESOLVED"

Scalar: TypeAlias = str | int | float | bool | None

# The lengths that the envelope's schema allows.
_MAX_CODE: Final = 200
_MAX_MESSAGE: Final = 2000

# The end of standard error is kept, because programs report their error last.
_MAX_STDERR: Final = 2000

# The most errors of a tool, and the most anchors of one error; longer lists would not be read.
_MAX_ENTRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """One error or warning."""

    code: str
    message: str
    details: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    retryable: bool | None = None
    """For errors only: whether a retry may help; None where that is unknown."""
    evidence: tuple[Evidence, ...] = ()

    def to_json(self) -> JSONObject:
        """Return the entry in the form of the envelope's schema, truncated to its length limits."""
        entry: JSONObject = {
            "code": self.code[:_MAX_CODE] or EXECUTION_FAILED,
            "message": self.message[:_MAX_MESSAGE] or self.code[:_MAX_CODE] or EXECUTION_FAILED,
        }
        if self.details:
            entry["details"] = dict(self.details)
        if self.retryable is not None:
            entry["retryable"] = self.retryable
        if self.evidence:
            entry["evidence"] = [item.to_json() for item in self.evidence]
        return entry


def redaction_warnings(outcome: JSON | Ending, *, is_redacted: bool) -> tuple[Problem, ...]:
    """Return the warning that secrets were redacted, where they were; an ending says so by itself."""
    if not is_redacted or isinstance(outcome, Ending):
        return ()
    return (Problem(_REDACTED, "Secrets were redacted in what this call returned or reported."),)


def exception_problem(error: BaseException) -> Problem:
    """Return the problem of an exception: its type, and what it states for the caller.

    Raises `BadStatement` where it is a `ToolError` that cannot be passed on.
    """
    stated = stated_error(error) or StatedError()
    name = type(error).__qualname__[:_MAX_CODE]
    return Problem(
        stated.code or EXECUTION_FAILED,
        stated.message or "Tool execution failed with an exception.",
        {**_scalars_of(stated.data), "exception": name},
        stated.retryable,
    )


def exit_problem(status: int, stderr: str = "") -> Problem:
    """Return the problem of a program that exited with `status`; as in Python, negative for a signal."""
    said: dict[str, Scalar] = {"stderr": stderr[-_MAX_STDERR:]} if stderr else {}
    if status < 0:
        message = f"Tool execution was ended by signal {-status}."
        return Problem(EXECUTION_FAILED, message, {"signal": -status, **said})
    message = f"Tool execution failed with exit code {status}."
    return Problem(EXECUTION_FAILED, message, {"exit_code": status, **said})


def stderr_problem(stderr: str) -> Problem:
    """Return the problem of a tool that failed, where only its standard error is known."""
    message = "Tool execution failed; standard error says why."
    return Problem(EXECUTION_FAILED, message, {"stderr": stderr[-_MAX_STDERR:]})


def ending_problem(ending: Ending, arguments: JSON = None) -> Problem:
    """Return the problem of a call that ended without a result, with those `details` that are scalars.

    An error that the tool states has its own code and message, and the scalars of its data as details.
    Where the arguments are invalid and given here, the evidence points to the invalid ones.
    """
    row = ending.row
    area = "EXECUTION" if row.stage is Stage.EXECUTE else row.stage.upper()
    code = f"ADAPTER.{area}.{ending.reason}"
    message, known = ending.sentence, _scalars(ending.details)
    known.pop("redacted", None)  # a warning of the envelope says so
    retryable = known.pop("retryable", None)
    if ending.reason in (Reason.TOOL_FAILED, Reason.TOOL_ERROR):
        code = EXECUTION_FAILED
    if ending.reason is Reason.TOOL_ERROR:
        code, message = str(known.pop("code", code)), str(known.pop("error", message))
        known.pop("data", None)
        known |= _scalars_of(ending.details.get("data"))
    details: dict[str, Scalar] = {
        **known,
        "reason": ending.reason.value,
        "canonical_code": row.canonical.code,
        "executed": isinstance(ending, Failed),
    }
    evidence: list[Evidence] = []
    if row.stage is Stage.ARGUMENTS and arguments is not None:
        for finding in ending.findings[:_MAX_ENTRIES]:
            source = anchor_at(ARGUMENTS, finding.pointer)
            anchor = parse_anchor(source)
            if anchor is not None and len(source) <= MAX_SOURCE and resolves(anchor, arguments):
                evidence.append(Evidence("/errors/0", source, note=finding.message[:MAX_NOTE]))
    may_help = retryable if isinstance(retryable, bool) else None
    return Problem(code, message, details, may_help, tuple(evidence))


def own_problems(output: JSON) -> tuple[Problem, ...]:
    """Return the errors that a tool reports in its output.

    1. A list `errors` of objects with a `code` and a `message`.
    2. One such object as `error`.
    3. The output itself is such an object.
    """
    if not isinstance(output, dict):
        return ()
    listed = output.get("errors")
    found = listed if isinstance(listed, list) else [output.get("error"), output]
    problems = [problem for item in found[:_MAX_ENTRIES] if (problem := _own(item)) is not None]
    return tuple(problems if isinstance(listed, list) else problems[:1])


def _own(entry: Any) -> Problem | None:
    given = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    code, message = given.get("code"), given.get("message")
    if isinstance(code, int) and not isinstance(code, bool):
        code = str(code)
    if not isinstance(code, str) or not code or not isinstance(message, str) or not message:
        return None
    details, retryable = given.get("details"), given.get("retryable")
    return Problem(code, message, _scalars_of(details), retryable if isinstance(retryable, bool) else None)


def _scalars_of(data: Any) -> dict[str, Scalar]:
    """Return the scalars of a JSON value: its members, or under `data` the value itself."""
    if isinstance(data, dict):
        return _scalars(cast("dict[str, Any]", data))
    return {} if data is None else _scalars({"data": data})


def _scalars(details: Mapping[str, object]) -> dict[str, Scalar]:
    return {
        name: value
        for name, value in details.items()
        if value is None or isinstance(value, str | int | float | bool)
    }
