"""What standard error says of an exception that a tool raised."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from portbook.app.fault_report import frames_of, line_of, report_fault
from portbook.exception_place import Fault


def raised(make: Any) -> Exception:
    try:
        make()
    except Exception as error:
        return error
    raise AssertionError


def test_a_line_breaks_no_line() -> None:
    kind = type("Odd\nportbook: forged", (Exception,), {})
    line = line_of(Fault(kind("canary"), "tool x", "id", is_meant=False))
    assert line == "tool x raised Odd\\nportbook: forged (request id)"


def test_a_cause_is_shown_without_our_frames_too() -> None:
    from portbook.canonical import json_bytes

    def fail() -> None:
        try:
            json_bytes(object())
        except ValueError as error:
            raise KeyError("outer") from error

    shown = frames_of(raised(fail))
    assert "portbook/canonical.py" not in shown
    assert shown.count("in fail") == 2
    assert "direct cause" in shown


def test_a_group_is_shown_with_its_parts() -> None:
    def fail() -> None:
        raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])

    shown = frames_of(raised(fail))
    assert "ValueError: one" in shown
    assert "KeyError: 'two'" in shown


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_standard_error_that_cannot_be_written_fails_nothing(
    stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    for with_traceback in (True, False):
        report_fault(Fault(ValueError(), "tool x", "id", is_meant=False), with_traceback=with_traceback)
