"""Which log the verbs of `portbook audit` read, and what of it cannot be read."""

from __future__ import annotations

from pathlib import Path

from support.audit_log import Log
from support.portbook_process import run


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
