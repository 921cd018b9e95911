"""Checkpoints: each follows from the one before, and covers exactly its segments."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from portbook.audit.checkpoint import CheckpointMark, checkpoint_of
from portbook.audit.checkpoint_verification import verify_checkpoints
from portbook.provenance.signing import SigningKey
from portbook.stores.checkpoints import CheckpointRow, CoveredRecords, Segment

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
