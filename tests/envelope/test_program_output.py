"""What a program printed and how it ended, as an outcome."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.envelope.errors_and_warnings import Problem
from portbook.envelope.program_output import Form, Ran, outcome_of
from portbook.envelope.result_put_into_envelope import Failure


@pytest.mark.parametrize(
    ("output", "form", "result"),
    [
        (b"", "auto", ""),
        (b"done", "auto", "done"),
        (b"done\n", "auto", "done\n"),
        (b'"done"\n', "auto", "done"),
        (b' {"ok": true}\n', "auto", {"ok": True}),
        (b"[1, 2]", "auto", [1, 2]),
        (b'{"ok": true} trailing', "auto", '{"ok": true} trailing'),
        (b'{"a":1,"a":2}', "auto", '{"a":1,"a":2}'),
        (b"1.50\n", "auto", "1.50\n"),
        (b"true\n", "auto", "true\n"),
        (b"null", "auto", "null"),
        (b"1.50\n", "json", 1.5),
        (b"null\n", "json", None),
        (b'{"ok": true}\n', "text", '{"ok": true}\n'),
        ("é\r\n".encode(), "auto", "é\r\n"),
    ],
)
def test_an_output_is_taken_for_what_it_is(output: bytes, form: Form, result: Any) -> None:
    assert outcome_of(Ran(0, output), form) == (result, ())


def test_bytes_that_are_no_text_become_base64_with_a_warning() -> None:
    result, [warning] = outcome_of(Ran(0, b"\xff\x00"))
    assert (result, warning.code) == ("/wA=", "ADAPTER.OUTPUT.BASE64")


def test_what_says_nothing_on_standard_output_or_something_on_standard_error_has_not_failed() -> None:
    assert outcome_of(Ran(0, b"", b"just so you know")) == ("", ())


@pytest.mark.parametrize(
    ("ran", "problem", "partial"),
    [
        (Ran(2), {"exit_code": 2}, None),
        (Ran(2, b"half\n"), {"exit_code": 2}, "half\n"),
        (Ran(2, b'{"half": 1}'), {"exit_code": 2}, {"half": 1}),
        (Ran(1, b"", b"oops\xff"), {"exit_code": 1, "stderr": "oops\ufffd"}, None),
        (Ran(-15), {"signal": 15}, None),
    ],
)
def test_a_program_that_fails_is_a_failure_with_its_output(ran: Ran, problem: Any, partial: Any) -> None:
    outcome, _ = outcome_of(ran)
    assert isinstance(outcome, Failure)
    assert outcome.partial == partial
    [found] = outcome.problems
    assert (found.code, found.details) == ("ADAPTER.EXECUTION.FAILED", problem)


@pytest.mark.parametrize(
    "ran",
    [
        Ran(1, b'{"errors": [{"code": "MY.CODE", "message": "It broke."}]}'),
        Ran(1, b"half", b'{"code": "MY.CODE", "message": "It broke."}\n'),
    ],
    ids=["on standard output", "on standard error"],
)
def test_a_programs_own_codes_are_preferred(ran: Ran) -> None:
    outcome, _ = outcome_of(ran)
    assert isinstance(outcome, Failure)
    assert outcome.problems == (Problem("MY.CODE", "It broke."),)


def test_errors_in_an_output_are_no_failure_where_the_program_says_that_it_succeeded() -> None:
    assert outcome_of(Ran(0, b'{"errors": [{"code": "C", "message": "m"}]}'))[0] == {
        "errors": [{"code": "C", "message": "m"}]
    }


def test_an_output_that_was_to_be_json_and_is_not_is_a_failure_with_that_output() -> None:
    outcome, _ = outcome_of(Ran(0, b"done"), "json")
    assert isinstance(outcome, Failure)
    assert outcome.partial == "done"
    [problem] = outcome.problems
    assert problem.code == "ADAPTER.OUTPUT.NOT_JSON"
    assert "done" not in problem.message


def test_why_it_did_not_run_comes_first() -> None:
    problem = Problem("C", "m")
    outcome, _ = outcome_of(Ran(127, b"", b'{"code": "MY.CODE", "message": "It broke."}', problem))
    assert outcome == Failure((problem,))


@pytest.mark.parametrize("status", [0, 2])
def test_an_envelope_is_passed_on_even_by_a_program_that_fails(status: int) -> None:
    envelope, _ = outcome_of(Ran(status, b'{"schema_version": "mcp.envelope.v0.1", "result": null}'))
    assert envelope == {"schema_version": "mcp.envelope.v0.1", "result": None}
