"""`portbook audit`, as a person and as a program use it."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from portbook.audit.jsonl import ChainedSink, JsonlSink
from support.portbook_process import PORTBOOK, Finished, environment, run

IDS = [f"{number}0000000-0000-4000-a000-000000000000" for number in range(10)]


def record(number: int, **members: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-02T03:04:{number:02d}.000Z",
        "session_id": None,
        "request_id": IDS[number],
        "tool_id": "mcp.tool:orders.refund",
        "status_code": 200,
        "latency_ms": 1.5,
        "redaction_applied": False,
        "decision": "allow",
        **members,
    }


class Log:
    """What a server leaves behind: one run, or several."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self._opened: list[JsonlSink] = []
        self.executions: list[ChainedSink] = []
        self._day = 0

    def new_run(self) -> None:
        self._day += 1
        names: dict[str, Any] = {"started": f"2026-01-{self._day:02d}T00:00:00.000Z", "run": "r", "keep": 50}
        self.execution = ChainedSink(self.log_dir, "execution", **names)
        self.intent = ChainedSink(self.log_dir, "intent", **names)
        self.envelope = JsonlSink(self.log_dir, "envelope_validation", **names)
        self.executions.append(self.execution)
        self._opened += [self.execution, self.intent, self.envelope]

    def write(self, *numbers: int, **members: Any) -> None:
        for number in numbers:
            self.execution.write(record(number, **members))
            self.envelope.write({"requestId": IDS[number], "status": "ok", "metadata": {"toolId": "t"}})

    def end(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def audit(self, *arguments: str, code: int = 0) -> Finished:
        finished = run(
            "audit", arguments[0], "--log-dir", str(self.log_dir), *arguments[1:], cwd=self.log_dir
        )
        assert finished.code == code, finished.err
        return finished

    def on_a_terminal(self, *arguments: str) -> str:
        controller, terminal = os.openpty()
        subprocess.run(
            [*PORTBOOK, "audit", arguments[0], "--log-dir", str(self.log_dir), *arguments[1:]],
            stdout=terminal,
            env=environment(NO_COLOR="1"),
            check=False,
            timeout=60,
        )
        os.close(terminal)
        shown = os.read(controller, 65536).decode()
        os.close(controller)
        return shown.replace("\r\n", "\n")


@pytest.fixture
def log(tmp_path: Path) -> Any:
    made = Log(tmp_path / "logs")
    made.log_dir.mkdir()
    made.new_run()
    yield made
    made.end()


# -- verify


@pytest.mark.covers("002.logging.audit-verify")
def test_verify_says_whole_and_names_the_newest_record(log: Log) -> None:
    log.write(1, 2)
    found = log.audit("verify").answers[0]
    assert found["whole"] is True
    execution, intent = found["streams"]
    assert execution["records"] == 2
    assert execution["head"].startswith(f"execution/{log.execution.path.name}#2:")
    assert execution["heads"] == [execution["head"]]
    assert (intent["stream"], intent["records"], intent["head"], intent["heads"]) == ("intent", 0, None, [])
    assert log.audit("verify", "--head", execution["head"]).answers[0]["whole"] is True


def test_verify_names_the_first_broken_record_and_exits_with_1(log: Log) -> None:
    log.write(1, 2, 3)
    path = log.execution.path
    path.write_bytes(path.read_bytes().replace(b'"latency_ms":1.5', b'"latency_ms":9.5', 2))
    found = log.audit("verify", code=1).answers[0]
    assert found["whole"] is False
    broken = found["streams"][0]["broken"]
    assert (broken["file"], broken["line"], broken["seq"], broken["problem"]) == (path.name, 1, 1, "altered")
    assert f"execution: broken: {path.name}:1: record 1 does not match its hash" in log.on_a_terminal(
        "verify"
    )


def test_verify_finds_a_break_among_the_intents(log: Log) -> None:
    log.intent.write(record(1))
    log.intent.write(record(2))
    path = log.intent.path
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    assert log.audit("verify", code=1).answers[0]["streams"][1]["broken"]["problem"] == "missing"


def test_verify_finds_a_noted_record_gone(log: Log) -> None:
    log.write(1, 2)
    head = log.audit("verify").answers[0]["streams"][0]["head"]
    path = log.execution.path
    path.write_bytes(path.read_bytes().partition(b"\n")[0] + b"\n")
    log.audit("verify")
    log.audit("verify", "--head", head, code=1)


@pytest.mark.parametrize("run", [0, 1])
def test_verify_names_a_record_of_each_file_to_be_noted(run: int, log: Log) -> None:
    paths = [log.execution.path]
    log.new_run()
    paths.append(log.execution.path)
    for sink in log.executions:
        for number in (1, 2):
            sink.write(record(number))
    heads = log.audit("verify").answers[0]["streams"][0]["heads"]
    assert [head.partition("#2:")[0] for head in heads] == [f"execution/{path.name}" for path in paths]
    paths[run].write_bytes(paths[run].read_bytes().partition(b"\n")[0] + b"\n")
    log.audit("verify")  # they were written side by side: neither follows the other
    found = log.audit("verify", *(f"--head={head}" for head in heads), code=1).answers[0]
    assert found["streams"][0]["broken"]["file"] == paths[run].name


def test_verify_misses_records_of_a_run_beside_others(log: Log) -> None:
    server = log.execution
    log.write(1, 2)
    log.new_run()
    log.write(3)
    for number in (4, 5):
        server.write(record(number))
    log.new_run()
    log.write(6)
    log.audit("verify")
    server.path.write_bytes(b"".join(server.path.read_bytes().splitlines(keepends=True)[:2]))
    [broken] = [stream["broken"] for stream in log.audit("verify", code=1).answers[0]["streams"][:1]]
    assert (broken["file"], broken["seq"], broken["problem"]) == (server.path.name, 4, "missing")
    server.path.unlink()
    [broken] = [stream["broken"] for stream in log.audit("verify", code=1).answers[0]["streams"][:1]]
    assert broken["problem"] == "predecessor_lost"


def test_verify_names_calls_that_ended_with_their_process(log: Log) -> None:
    for number in (1, 2):
        log.intent.write(record(number))
    log.write(1)
    assert log.audit("verify").answers[0]["unknown"] == []  # it may still be running
    log.end()
    [unknown] = log.audit("verify").answers[0]["unknown"]
    assert (unknown["request_id"], unknown["line"]) == (IDS[2], 2)


def test_verify_speaks_in_words_on_a_terminal(log: Log) -> None:
    log.write(1)
    shown = log.on_a_terminal("verify").splitlines()
    assert shown[0].startswith("execution: whole: 1 record in 1 file; newest execution/2026-01-01T")
    assert shown[1] == "intent: whole: 0 records in 1 file"


@pytest.mark.parametrize("head", ["x", "execution/x", "other/a.jsonl#1:" + "0" * 64])
def test_what_is_no_head_is_a_usage_error(head: str, log: Log) -> None:
    assert "STREAM/FILE#SEQ:HASH" in log.audit("verify", "--head", head, code=2).err


def test_a_folder_that_is_not_there_is_not_a_whole_log(tmp_path: Path) -> None:
    finished = run("audit", "verify", cwd=tmp_path)
    assert finished.code == 2
    assert "runs: there is no such folder" in finished.err
    assert not (tmp_path / "runs").exists()


def test_a_file_that_cannot_be_read_is_not_a_break(log: Log) -> None:
    (log.execution.path.parent / "2027.r.jsonl").mkdir()
    finished = log.audit("verify", code=2)
    assert "2027.r.jsonl: Is a directory" in finished.err
    assert "Traceback" not in finished.err


# -- tail


def test_tail_prints_the_newest_records_of_all_runs(log: Log) -> None:
    first = log.execution
    log.write(1, 2)
    log.new_run()
    log.write(3, 5)
    first.write(record(4))  # a run that started earlier is still writing
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
    following = subprocess.Popen(
        [*PORTBOOK, "audit", "tail", "-f", "--log-dir", str(log.log_dir)],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert following.stdout is not None
    try:
        assert json.loads(following.stdout.readline())["seq"] == 1
        log.write(2)
        assert json.loads(following.stdout.readline())["seq"] == 2
        log.new_run()
        log.write(3)
        assert json.loads(following.stdout.readline())["request_id"] == IDS[3]
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=30)
    assert following.returncode == 0


# -- show


@pytest.mark.covers("002.logging.audit-show")
def test_show_finds_all_views_of_a_call(log: Log) -> None:
    log.intent.write(record(2))
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
    log.intent.write(record(1))
    assert log.audit("show", IDS[1]).answers[0]["outcome"] == "running"
    log.end()
    assert log.audit("show", IDS[1]).answers[0]["outcome"] == "unknown"
    assert "outcome: unknown\nintent: " in log.on_a_terminal("show", IDS[1])


def test_of_calls_with_the_same_id_the_one_without_an_outcome_counts(log: Log) -> None:
    for _ in range(2):
        log.intent.write(record(1))
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


# -- export


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ([], [1, 2, 3, 4]),
        (["--since", "2026-01-02T03:04:03Z"], [3, 4]),
        (["--until", "2026-01-02T03:04:03.000"], [1, 2]),
        (["--since", "2026-01-02", "--until", "2026-01-02T05:04:02+02:00"], [1]),
        (["--since", "2026-01-03"], []),
        (["--tool", "orders.*"], [1, 2]),
        (["--tool", "mcp.tool:echo", "--tool", "*.refund"], [1, 2, 3, 4]),
        (["--status", "success"], [1, 2, 3]),
        (["--status", "failure"], [4]),
        (["--status", "504"], [4]),
        (["--status", "403"], []),
        (["--json", "--format", "csv"], [1, 2, 3, 4]),
    ],
)
def test_export_writes_the_records_that_are_asked_for(
    options: list[str], numbers: list[int], log: Log
) -> None:
    log.write(1, 2)
    log.new_run()
    log.write(3, tool_id="mcp.tool:echo")
    log.write(4, tool_id="mcp.tool:echo", error_class="TIMEOUT", status_code=504)
    found = log.audit("export", *options).answers
    assert [IDS.index(each["request_id"]) for each in found] == numbers


def test_export_leaves_out_what_is_no_record_and_says_so(log: Log) -> None:
    log.write(1)
    with log.execution.path.open("ab") as file:
        file.write(b"{\n")
    finished = log.audit("export")
    assert len(finished.answers) == 1
    assert f"warning: {log.execution.path.name}:2: not a record; left out" in finished.err


@pytest.mark.parametrize("options", [["--since", "yesterday"], ["--until", "x"], ["--status", "ok"]])
def test_what_cannot_be_asked_for_is_a_usage_error(options: list[str], log: Log) -> None:
    assert options[0] in log.audit("export", *options, code=2).err


def test_export_writes_csv(log: Log) -> None:
    log.write(1, session_id="=1+1")
    [row] = csv.DictReader(io.StringIO(log.audit("export", "--format", "csv").out.decode()))
    assert (row["seq"], row["request_id"], row["session_id"], row["approval_id"]) == (
        "1",
        IDS[1],
        "'=1+1",
        "",
    )
