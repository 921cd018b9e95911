"""Whether a log is whole, as data."""

from __future__ import annotations

from pathlib import Path

from portbook.audit.chain import Links
from portbook.audit.journal import chained
from portbook.audit.verified_log import lost_calls, proof_data, verified_streams


def written(folder: Path, *records: bytes) -> Path:
    path = folder / "mcp_server" / "execution" / "2026-01-31T09-00-00.000Z.a.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(chained(records, 0, str(Links()))[0])
    return path


def test_a_log_without_files_is_whole(tmp_path: Path) -> None:
    assert proof_data(verified_streams(tmp_path, 10), lost_calls(tmp_path))["whole"] is True


def test_a_changed_record_is_named_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"request_id":"a"}', b'{"request_id":"b"}')
    whole = proof_data(verified_streams(tmp_path, 10), [])
    assert (whole["whole"], whole["streams"][0]["records"]) == (True, 2)
    path.write_bytes(path.read_bytes().replace(b'"b"', b'"c"'))
    broken = proof_data(verified_streams(tmp_path, 10), [])
    assert (broken["whole"], broken["streams"][0]["broken"]["line"]) == (False, 2)


def test_a_call_whose_process_died_is_lost(tmp_path: Path) -> None:
    written(tmp_path, b'{"request_id":"a"}')
    intents = tmp_path / "mcp_server" / "intent"
    intents.mkdir()
    kept = b'{"request_id":"a","tool_id":"t"}\n{"request_id":"b","tool_id":"t"}\n'
    (intents / "2026-01-31T09-00-00.000Z.a.jsonl").write_bytes(kept)
    lost = proof_data({}, lost_calls(tmp_path))["unknown"]
    assert [(each["request_id"], each["line"]) for each in lost] == [("b", 2)]
