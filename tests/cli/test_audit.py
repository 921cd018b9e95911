"""`portbook audit tail` and `show`, as a person and as a program use them."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from portbook.canonical import json_bytes
from support.audit_log import IDS, Log, record
from support.portbook_process import PORTBOOK, child

# -- tail


def test_tail_prints_the_newest_records_of_all_runs(log: Log) -> None:
    first = log.execution
    log.write(1, 2)
    log.new_run()
    log.write(3, 5)
    first.write(json_bytes(record(4)))  # a run that started earlier is still writing
    ids = [answer["request_id"] for answer in log.audit("tail", "-n", "3").answers]
    assert ids == IDS[3:6]
    assert len(log.audit("tail").answers) == 5
    assert log.audit("tail", "-n", "0").answers == []


def test_tail_escapes_what_it_shows_on_a_terminal(log: Log) -> None:
    log.write(1, caller="\x1b]0;title\x07", error_class="POLICY_VIOLATION", status_code=403)
    shown = log.on_a_terminal("tail")
    assert "\\x1b]0;title\\x07" in shown
    assert "\x1b" not in shown
    assert "403  orders.refund  POLICY_VIOLATION  1.5 ms  allow" in shown


def test_tail_follows_what_is_added_until_it_is_interrupted(log: Log) -> None:
    log.write(1)
    with child(
        [*PORTBOOK, "audit", "tail", "-f", "--log-dir", str(log.log_dir)], stdout=subprocess.PIPE
    ) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["seq"] == 1
        log.write(2)
        assert json.loads(following.stdout.readline())["seq"] == 2
        log.new_run()
        log.write(3)
        assert json.loads(following.stdout.readline())["request_id"] == IDS[3]
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 0


# -- show


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
