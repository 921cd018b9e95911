"""`portbook audit tail`, as a person and as a program use it."""

from __future__ import annotations

import json
import signal
import subprocess

from portbook.canonical import json_bytes
from support.audit_log import IDS, Log, record
from support.portbook_process import PORTBOOK, child


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
