"""`portbook audit show`, as a person and as a program use it."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from portbook.canonical import json_bytes
from portbook.cli.audit_export_show_tail import COLUMNS, CsvWriter, in_a_line, in_lines
from support.audit_log import IDS, Log, record
from support.portbook_process import PORTBOOK, child, run


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


def test_a_folder_that_is_not_there_is_not_a_whole_log(tmp_path: Path) -> None:
    finished = run("audit", "verify", cwd=tmp_path)
    assert finished.code == 2
    assert "runs: no such folder" in finished.err
    assert not (tmp_path / "runs").exists()


def test_a_file_that_cannot_be_read_is_not_a_break(log: Log) -> None:
    (log.execution.path.parent / "2027.r.jsonl").mkdir()
    finished = log.audit("verify", code=2)
    assert "2027.r.jsonl: Is a directory" in finished.err
    assert "Traceback" not in finished.err


def test_export_leaves_out_what_is_no_record_and_says_so(log: Log) -> None:
    log.write(1)
    with log.execution.path.open("ab") as file:
        file.write(b"{\n")
    finished = log.audit("export")
    assert len(finished.answers) == 1
    assert f"warning: {log.execution.path.name}:2: not a record; skipped" in finished.err


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


def test_tail_prints_as_many_records_as_were_asked_for_and_names_what_is_none(log: Log) -> None:
    log.write(1, 2)
    with log.execution.path.open("ab") as file:
        file.write(b"{\n")
    finished = log.audit("tail", "-n", "2")
    assert len(finished.answers) == 2
    assert f"warning: {log.execution.path.name}: 1 line is not a record; skipped" in finished.err


def test_every_member_of_a_record_has_a_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "records.md").read_text(encoding="utf-8")
    view = page.partition("\n## The execution view\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^- ((?:`\w+`(?:, )?)+):", view, re.MULTILINE)
    assert sorted(COLUMNS) == sorted(name for names in listed for name in re.findall(r"\w+", names))


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


@pytest.mark.covers("002.logging.csv")
@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("\uff1dx", "'\uff1dx"),
        ("\tx", "'\\tx"),
        ("a=b", "a=b"),
        ('a"b,c\nd', 'a"b,c\nd'),
        (None, ""),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (0, "0"),
        (-1.5, "-1.5"),
        ({"a": [1]}, '{"a":[1]}'),
    ],
)
def test_no_cell_is_a_formula(value: Any, cell: str) -> None:
    out = io.StringIO()
    writer = CsvWriter(out)
    writer.write({"session_id": value, "seq": 1, "unheard_of": 2})
    [row] = csv.DictReader(io.StringIO(out.getvalue()))
    assert list(row) == list(COLUMNS)
    assert (row["seq"], row["session_id"], row["hash"]) == ("1", cell, "")


def test_a_line_shows_that_something_is_not_there() -> None:
    assert in_a_line({"tool_id": "mcp.tool:echo"}) == "-    -  echo  -  - ms  -  -  -"


def test_what_a_forged_record_holds_is_escaped() -> None:
    forged: Any = {"caller": ["\x1b[2J"], "a\nb": "\u202e", "c": {"d": {"e": 1}, "f": {}}}
    assert "\x1b" not in in_a_line(forged)
    assert list(in_lines(forged)) == [
        '  caller: ["\\u001b[2J"]',
        "  a\\nb: \\u202e",
        "  c.d.e: 1",
        "  c.f: {}",
    ]
