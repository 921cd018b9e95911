"""`portbook audit show`, as a person and as a program use it."""

from __future__ import annotations

import pytest

from portbook.canonical import json_bytes
from support.audit_log import IDS, Log, record


@pytest.mark.covers("002.logging.audit-show")
def test_show_finds_all_views_of_a_call(log: Log) -> None:
    log.intent.write(json_bytes(record(2)))
    log.write(1, 2)
    [found] = log.audit("show", IDS[2]).answers
    assert (found["request_id"], found["outcome"]) == (IDS[2], "success")
    assert [(each["line"], each["record"]["seq"]) for each in found["execution"]] == [(2, 2)]
    assert [each["line"] for each in found["intent"]] == [1]
    assert [each["record"]["requestId"] for each in found["envelope_validation"]] == [IDS[2]]


def test_show_takes_a_number_as_one_of_the_newest_run(log: Log) -> None:
    log.write(1, 2)
    log.new_run()
    log.write(3, 4, error_class="TIMEOUT")
    [found] = log.audit("show", "2").answers
    assert (found["request_id"], found["outcome"]) == (IDS[4], "failure")


def test_a_call_that_ended_with_its_process_is_unknown(log: Log) -> None:
    log.intent.write(json_bytes(record(1)))
    assert log.audit("show", IDS[1]).answers[0]["outcome"] == "running"
    log.end()
    assert log.audit("show", IDS[1]).answers[0]["outcome"] == "unknown"
    assert "outcome: unknown\nintent: " in log.on_a_terminal("show", IDS[1])


def test_of_calls_with_the_same_id_the_one_without_an_outcome_counts(log: Log) -> None:
    for _ in range(2):
        log.intent.write(json_bytes(record(1)))
    log.write(1)
    log.end()
    assert log.audit("show", IDS[1]).answers[0]["outcome"] == "unknown"


@pytest.mark.parametrize("identifier", ["7", "no-such-id", "9" * 5000])
def test_what_is_not_there_is_said_and_exits_with_1(identifier: str, log: Log) -> None:
    log.write(1)
    finished = log.audit("show", identifier, code=1)
    assert "there is no record of" in finished.err
    assert finished.out == b""


def test_show_lists_members_on_a_terminal(log: Log) -> None:
    log.write(1, session_id="a\nb")
    shown = log.on_a_terminal("show", "1")
    assert shown.startswith("outcome: success\nexecution: 2026-01-01T")
    assert "  session_id: a\\nb\n" in shown
    assert "  metadata.toolId: t\n" in shown
