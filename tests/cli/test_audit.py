"""`portbook audit verify`: whether every record is as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.canonical import json_bytes
from support.audit_log import IDS, Log, record
from support.portbook_process import run


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
    log.intent.write(json_bytes(record(1)))
    log.intent.write(json_bytes(record(2)))
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
    for first, sink in zip((1, 3), log.executions, strict=True):
        for number in (first, first + 1):
            sink.write(json_bytes(record(number)))
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
        server.write(json_bytes(record(number)))
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
        log.intent.write(json_bytes(record(number)))
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


def test_a_match_needs_values_a_key_and_a_record_with_digests(log: Log) -> None:
    log.write(1)
    assert "give at least one of" in log.audit("match", "1", code=2).err
    (log.log_dir / "a.json").write_text("{}")
    assert "audit.key" in log.audit("match", "1", "--arguments", "a.json", code=2).err
    (log.log_dir / "audit.key").write_text("pbk_audit_" + "0" * 64)
    assert "no audit key was set" in log.audit("match", "1", "--arguments", "a.json", code=1).err
    assert "there is no record" in log.audit("match", "9", "--arguments", "a.json", code=1).err


def test_a_key_is_made_once_and_never_printed(tmp_path: Path) -> None:
    made = run("audit", "key", "k", cwd=tmp_path)
    secret = (tmp_path / "k").read_text()
    assert secret.startswith("pbk_audit_")
    assert secret.strip() not in made.out.decode() + made.err
    again = run("audit", "key", "k", cwd=tmp_path)
    assert (again.answers, again.err) == (made.answers, "")
    assert (tmp_path / "k").read_text() == secret
    (tmp_path / "other").write_text("a")
    refused = run("audit", "key", "other", cwd=tmp_path)
    assert (refused.code, "not an audit key" in refused.err) == (2, True)


def test_settings_that_name_no_key_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[audit]\nkey = "missing"\n')
    done = run("check", cwd=tmp_path)
    assert done.code != 0
    assert "portbook.toml:2:" in done.out.decode() + done.err
    assert "portbook audit key" in done.out.decode() + done.err
