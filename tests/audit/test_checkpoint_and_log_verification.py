"""Checkpoints: each follows from the one before, and covers exactly its segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from portbook.audit.chain import Links
from portbook.audit.checkpoint_and_hash_tree import (
    CheckpointMark,
    CheckpointRow,
    CoveredRecords,
    Segment,
    checkpoint_of,
)
from portbook.audit.checkpoint_and_log_verification import (
    CoveredLog,
    lost_calls,
    proof_data,
    verified_streams,
    verify_checkpoints,
)
from portbook.audit.journal import chained
from portbook.provenance.signing import SigningKey

SEGMENT = Segment("log", "execution", "a.jsonl", 1, 2, "a" * 64, "b" * 64)
KEY = SigningKey(b"k" * 32)


@dataclass
class Made:
    """Checkpoints that were made one after another."""

    signer: SigningKey | None = None
    covered: list[CoveredRecords] = field(default_factory=list[CoveredRecords])

    def add(self, *segments: Segment, floor: int | None = None) -> CheckpointRow:
        before = self.covered[-1].checkpoint if self.covered else None
        at = f"2026-01-02T03:04:0{len(self.covered)}.000Z"
        row = checkpoint_of(before, segments, [], floor, at, self.signer)
        self.covered.append(CoveredRecords(row, segments))
        return row


@pytest.fixture
def made() -> Made:
    found = Made()
    found.add(SEGMENT, SEGMENT._replace(file="b.jsonl"))
    found.add(SEGMENT._replace(first=3, last=5))
    found.add(SEGMENT._replace(first=6, last=6))
    return found


def test_checkpoints_that_follow_from_each_other_are_whole(made: Made) -> None:
    verdict = verify_checkpoints(made.covered)
    assert (verdict.broken, verdict.checkpoints, verdict.is_pruned) == (None, 3, False)
    assert verdict.newest == CheckpointMark(3, made.covered[2].checkpoint.hash)
    assert verdict.at == "2026-01-02T03:04:02.000Z"
    assert CheckpointMark.read(str(verdict.newest)) == verdict.newest
    assert CheckpointMark.read("0:x") is None


def test_nothing_is_whole_without_a_checkpoint() -> None:
    assert verify_checkpoints([]).newest is None
    assert verify_checkpoints([]).broken is None


def test_a_segment_that_is_missing_from_the_front_or_the_middle_is_found() -> None:
    made = Made()
    made.add(SEGMENT._replace(first=2, last=2))
    broken = verify_checkpoints(made.covered).broken
    assert broken is not None
    assert (broken.number, broken.problem) == (1, "segment_missing")


@pytest.mark.parametrize("at", [0, 1])
def test_a_checkpoint_that_is_missing_is_found(at: int, made: Made) -> None:
    del made.covered[at]
    broken = verify_checkpoints(made.covered).broken
    assert broken is not None
    assert (broken.number, broken.problem) == (at + 1, "missing")


def test_the_front_may_be_missing_where_a_later_one_says_that_it_was_pruned(made: Made) -> None:
    made.add(SEGMENT._replace(first=7, last=7), floor=3)
    verdict = verify_checkpoints(made.covered[2:], [CheckpointMark(1, made.covered[0].checkpoint.hash)])
    assert (verdict.broken, verdict.is_pruned, verdict.checkpoints) == (None, True, 2)
    broken = verify_checkpoints(made.covered[3:]).broken
    assert broken is not None
    assert (broken.number, broken.problem) == (3, "missing")


def test_a_noted_checkpoint_that_is_gone_from_the_end_is_found(made: Made) -> None:
    mark = CheckpointMark(3, made.covered.pop().checkpoint.hash)
    assert verify_checkpoints(made.covered).broken is None
    broken = verify_checkpoints(made.covered, [mark]).broken
    assert broken is not None
    assert (broken.number, broken.problem) == (3, "missing")


def test_the_newest_checkpoint_has_to_be_signed_by_a_key_that_is_given() -> None:
    made = Made(KEY)
    row = made.add(SEGMENT)
    assert verify_checkpoints(made.covered, keys=[KEY.key_id]).broken is None
    other = SigningKey(b"o" * 32)
    broken = verify_checkpoints(made.covered, keys=[other.key_id]).broken
    assert broken is not None
    assert broken.problem == "not_signed"
    forged = row._replace(key_id=other.key_id)  # the signature is not that key's
    broken = verify_checkpoints([CoveredRecords(forged, (SEGMENT,))], keys=[other.key_id]).broken
    assert broken is not None
    assert broken.problem == "bad_signature"


# Whether a log is whole, as data.


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
