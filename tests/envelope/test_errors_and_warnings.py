"""Failures as entries of `errors`: what is said of them, and what never is."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.envelope.errors_and_warnings import (
    Problem,
    ending_problem,
    exception_problem,
    exit_problem,
    own_problems,
    stderr_problem,
)
from portbook.errors import REASONS, Failed, Finding, Reason, Refused
from portbook.tools.contract_registry import SchemaRegistry

SCHEMA = SchemaRegistry().load("mcp.envelope.v0.1")


def require_valid(problem: Problem) -> None:
    envelope = {"schema_version": "mcp.envelope.v0.1", "result": None, "errors": [problem.to_json()]}
    assert SCHEMA.findings(envelope) == ()


@pytest.mark.parametrize(
    ("problem", "entry"),
    [
        (
            exit_problem(2),
            {
                "code": "ADAPTER.EXECUTION.FAILED",
                "message": "Tool execution failed with exit code 2.",
                "details": {"exit_code": 2},
            },
        ),
        (
            exit_problem(1, "oops\n"),
            {
                "code": "ADAPTER.EXECUTION.FAILED",
                "message": "Tool execution failed with exit code 1.",
                "details": {"exit_code": 1, "stderr": "oops\n"},
            },
        ),
        (
            exit_problem(-9),
            {
                "code": "ADAPTER.EXECUTION.FAILED",
                "message": "Tool execution was ended by signal 9.",
                "details": {"signal": 9},
            },
        ),
        (
            stderr_problem("oops"),
            {
                "code": "ADAPTER.EXECUTION.FAILED",
                "message": "Tool execution failed; standard error says why.",
                "details": {"stderr": "oops"},
            },
        ),
        (
            exception_problem(KeyError("canary")),
            {
                "code": "ADAPTER.EXECUTION.FAILED",
                "message": "Tool execution failed with an exception.",
                "details": {"exception": "KeyError"},
            },
        ),
    ],
)
def test_a_failure_is_told_by_what_was_seen_of_it(problem: Problem, entry: Any) -> None:
    assert problem.to_json() == entry
    require_valid(problem)


def test_the_end_of_what_was_said_is_kept() -> None:
    said = stderr_problem("x" * 5000 + "the end").to_json()["details"]
    assert isinstance(said, dict)
    assert len(str(said["stderr"])) == 2000
    assert str(said["stderr"]).endswith("the end")


def test_an_exceptions_own_code_is_preferred() -> None:
    class QuotaExceededError(Exception):
        code = "QUOTA.EXCEEDED"

    assert exception_problem(QuotaExceededError("canary")).code == "QUOTA.EXCEEDED"
    assert exception_problem(SystemExit(3)).code == "ADAPTER.EXECUTION.FAILED"
    assert "canary" not in repr(exception_problem(QuotaExceededError("canary")))


def test_what_is_too_long_is_cut_and_what_is_empty_is_filled() -> None:
    require_valid(Problem("c" * 300, "m" * 3000))
    require_valid(Problem("", ""))
    assert Problem("C", "").to_json()["message"] == "C"


@pytest.mark.parametrize("reason", Reason)
def test_every_ending_has_its_entry(reason: Reason) -> None:
    for kind in (Refused, Failed):
        ending = kind(reason, note="canary")
        problem = ending_problem(ending)
        require_valid(problem)
        assert problem.message == ending.sentence
        assert problem.details == {
            "reason": reason.value,
            "canonical_code": REASONS[reason].canonical.code,
            "executed": kind is Failed,
        }
        assert "canary" not in repr(problem)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.TOOL_FAILED, "ADAPTER.EXECUTION.FAILED"),
        (Reason.TIMEOUT, "ADAPTER.EXECUTION.TIMEOUT"),
        (Reason.BAD_ARGUMENTS, "ADAPTER.ARGUMENTS.BAD_ARGUMENTS"),
        (Reason.BAD_RESULT, "ADAPTER.RESULT.BAD_RESULT"),
    ],
)
def test_an_endings_code_names_its_stage(reason: Reason, code: str) -> None:
    assert ending_problem(Failed(reason)).code == code


def test_what_an_ending_tells_beside_its_reason_is_told_where_it_is_a_scalar() -> None:
    told = {"approval_id": "a-1", "retryable": True, "supported": ["x"], "reason": "not mine"}
    problem = ending_problem(Refused(Reason.BUSY, details=told))
    assert problem.details["approval_id"] == "a-1"
    assert problem.details["reason"] == "BUSY"
    assert problem.details.keys() == {"approval_id", "reason", "canonical_code", "executed"}
    assert problem.retryable is True
    require_valid(problem)


def test_wrong_arguments_are_pointed_at_where_they_are() -> None:
    findings = (
        Finding("/limit", "above the maximum 100", "maximum", ""),
        Finding("", 'missing property "query"', "required", ""),
        Finding("/gone/…", "cut short", "type", ""),
    )
    problem = ending_problem(Refused(Reason.BAD_ARGUMENTS, findings), {"limit": 500})
    assert [(item.source, item.note) for item in problem.evidence] == [
        ("artifact:arguments#json:/limit", "above the maximum 100"),
        ("artifact:arguments", 'missing property "query"'),
    ]
    require_valid(problem)
    assert ending_problem(Refused(Reason.BAD_ARGUMENTS, findings)).evidence == ()
    assert ending_problem(Failed(Reason.BAD_RESULT, findings), {"limit": 500}).evidence == ()


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ({"errors": [{"code": "A.B", "message": "m"}]}, [Problem("A.B", "m")]),
        (
            {
                "errors": [
                    {"code": "A", "message": "m"},
                    {"code": 5, "message": "n"},
                    {"code": "C"},
                    "x",
                    None,
                ]
            },
            [Problem("A", "m"), Problem("5", "n")],
        ),
        ({"error": {"code": -32602, "message": "m"}}, [Problem("-32602", "m")]),
        ({"error": "not found", "code": "X", "message": "m"}, [Problem("X", "m")]),
        (
            {"code": "X", "message": "m", "details": {"a": 1, "b": [], "c": None}, "retryable": True},
            [Problem("X", "m", {"a": 1, "c": None}, True)],
        ),
        ({"code": "X", "message": ""}, []),
        ({"code": "", "message": "m"}, []),
        ({"code": True, "message": "m"}, []),
        ({"errors": [], "code": "X", "message": "m"}, []),
        ({"ok": False}, []),
        ([{"code": "X", "message": "m"}], []),
        ("X: m", []),
        (None, []),
    ],
)
def test_the_errors_that_a_tool_reports_itself_are_found(output: Any, found: list[Problem]) -> None:
    assert list(own_problems(output)) == found
    for problem in own_problems(output):
        require_valid(problem)
