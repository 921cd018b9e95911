"""Verifies checkpoints: each follows from the one before it, and covers its segments. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, TypeAlias

from portbook.audit.chain import GENESIS
from portbook.audit.checkpoint import CheckpointBody, CheckpointMark, is_signed_by, tree_root
from portbook.provenance.signing import BadKey, PublicKey
from portbook.stores.checkpoints import CheckpointRow, CoveredRecords, Segment
from portbook.text.named_tuple import NamedTuple

__all__ = ["CheckpointBreak", "CheckpointProblem", "CheckpointVerdict", "verify_checkpoints"]

CheckpointProblem: TypeAlias = Literal["altered", "missing", "not_signed", "bad_signature", "segment_missing"]


class CheckpointBreak(NamedTuple):
    """The first checkpoint that is not as it was made."""

    number: int
    problem: CheckpointProblem
    sentence: str


class CheckpointVerdict(NamedTuple):
    """The result of verifying checkpoints."""

    checkpoints: int
    """How many are valid, up to the first that is not."""
    newest: CheckpointMark | None
    at: str | None
    """When the newest was made."""
    signed_by: str | None
    """The id of the key that signed the newest."""
    is_pruned: bool
    """Whether older ones have been pruned."""
    broken: CheckpointBreak | None


def verify_checkpoints(
    covered: Sequence[CoveredRecords],
    noted: Iterable[CheckpointMark] = (),
    keys: Collection[str] = (),
) -> CheckpointVerdict:
    """Verify that each checkpoint follows from the one before it, and covers its segments.

    `noted` are checkpoints that must still exist. Where `keys` are given, one of them has signed the newest.
    """
    walk = _CheckpointWalk(noted)
    for each in covered:
        if walk.step(each) is not None:
            break
    return walk.end(covered, keys)


class _CheckpointWalk:
    """Verifies checkpoints, oldest first."""

    def __init__(self, noted: Iterable[CheckpointMark]) -> None:
        self._noted = dict(noted)
        self._newest: CheckpointRow | None = None
        self._at: str | None = None
        self._count = 0
        self._first = 1
        self._floor = 1
        self._last: dict[tuple[str, str, str], int] = {}
        self._broken: CheckpointBreak | None = None

    def step(self, covered: CoveredRecords) -> CheckpointBreak | None:
        """Verify the next checkpoint.

        1. Its body matches its hash, and is one that this version knows.
        2. Its number is the next one; only the oldest have been pruned.
        3. It follows from the one before it.
        4. Its signature, if it has one, is of its body.
        5. Its tree is that of its segments, so none of them was changed or removed.
        6. Each segment continues the one before it of the same writer.
        7. It is the one that was noted.
        """
        row, before = covered.checkpoint, self._newest
        body = CheckpointBody.read(row)
        if body is None:
            return self._break(row.number, "altered", "does not match its hash")
        if before is None:
            self._first = row.number
        expected = row.number if before is None else before.number + 1
        if row.number != expected:
            return self._break(expected, "missing", f"is missing before {row.number}")
        # What the oldest of pruned checkpoints follows from is gone.
        prev = before.hash if before else GENESIS if row.number == 1 else body.prev
        if body.prev != prev:
            return self._break(row.number, "altered", "does not follow from the one before it")
        if row.signature is not None and not _is_well_signed(row):
            return self._break(row.number, "bad_signature", "has a signature that is not of its key")
        if (body.segments, body.root) != (len(covered.segments), tree_root(covered.segments)):
            return self._break(row.number, "altered", "does not cover these segments: they were changed")
        if (gap := self._gap(covered.segments)) is not None:
            return self._break(row.number, "segment_missing", f"has no segment from record {gap}")
        if self._noted.pop(row.number, row.hash) != row.hash:
            return self._break(row.number, "altered", "has been altered since it was noted")
        self._floor = max(self._floor, body.floor)
        self._newest, self._at, self._count = row, body.at, self._count + 1
        return None

    def end(self, covered: Sequence[CoveredRecords], keys: Collection[str]) -> CheckpointVerdict:
        """Return the verdict.

        1. What is missing at the front was pruned, and a checkpoint says so.
        2. What was noted is there, or was pruned.
        3. The newest is signed by one of the keys, where any are given.
        """
        newest = self._newest
        if self._broken is None and self._first > self._floor:
            self._break(
                self._first - 1, "missing", "is missing at the front, and none says that it was pruned"
            )
        lost = [number for number in self._noted if number >= self._first]
        if self._broken is None and lost:
            self._break(min(lost), "missing", "is missing, and it was noted")
        if self._broken is None and keys and (newest is None or newest.key_id not in keys):
            number = 1 if newest is None else newest.number
            self._break(number, "not_signed", "is not signed by a key that was given")
        return CheckpointVerdict(
            self._count,
            None if newest is None else CheckpointMark(newest.number, newest.hash),
            self._at,
            None if newest is None else newest.key_id,
            bool(covered) and self._first > 1,
            self._broken,
        )

    def _gap(self, segments: Iterable[Segment]) -> str | None:
        """Return the record from which a segment is missing, if one is."""
        for each in segments:
            writer = each.log, each.stream, each.file
            expected = self._last.get(writer, 0) + 1
            # What came before the oldest checkpoint that is kept was pruned with it.
            is_known = writer in self._last or self._first == 1
            if each.first != expected and is_known:
                return f"{expected} of {each.stream}/{each.file}"
            self._last[writer] = each.last
        return None

    def _break(self, number: int, problem: CheckpointProblem, sentence: str) -> CheckpointBreak:
        self._broken = CheckpointBreak(number, problem, sentence)
        return self._broken


def _is_well_signed(row: CheckpointRow) -> bool:
    try:
        return row.key_id is not None and is_signed_by(row, PublicKey.from_id(row.key_id))
    except BadKey:
        return False
