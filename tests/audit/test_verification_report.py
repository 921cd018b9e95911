"""Whether a log is whole, as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.audit.chain import Links
from portbook.audit.checkpoint import checkpoint_of
from portbook.audit.journal import chained
from portbook.audit.verification_report import CoveredLog, lost_calls, proof_data, verified_streams
from portbook.stores.checkpoints import CoveredRecords, Segment


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


@pytest.mark.parametrize(
    ("log", "files", "known"),
    [
        ("pod-a:/runs", {"a1"}, ["a1", "a2"]),
        ("pod-x:/runs", {"a1"}, ["a1", "a2"]),  # renamed
        ("pod-x:/runs", {"old1"}, ["old1", "old2"]),  # from before machines were told apart
        ("pod-b:/runs", {"a1"}, ["a1", "a2", "b1"]),  # renamed, with files of its own
        ("pod-x:/runs", set[str](), []),  # renamed, with nothing left: nobody can tell
        (None, set[str](), ["a1", "a2", "b1", "old1", "old2"]),  # collected from all
    ],
)
def test_a_folder_is_known_by_every_name_that_one_of_its_files_was_covered_under(
    log: str | None, files: set[str], known: list[str]
) -> None:
    covered = {"pod-a:/runs": ["a1", "a2"], "pod-b:/runs": ["b1"], "/runs": ["old1", "old2"]}
    segments = tuple(
        Segment(name, "execution", file, 1, 1, "a" * 64, None) for name in covered for file in covered[name]
    )
    row = checkpoint_of(None, segments, [], None, "2026-01-02T03:04:05.000Z", None)
    heads = CoveredLog([CoveredRecords(row, segments)], log, files).heads_of("execution")
    assert sorted(each.head.file for each in heads) == known
