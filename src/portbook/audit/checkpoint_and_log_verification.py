"""Whether the log of a folder is whole, with its checkpoints: what `portbook audit verify` reports.

- The chain of each stream, which `chain_verification` verifies, and calls without an outcome.
- `CoveredLog`: what checkpoints know of one log, and how many records no checkpoint covers.
- `verify_checkpoints`: each follows from the one before it, and covers its segments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from portbook.audit.chain import GENESIS, Head
from portbook.audit.chain_verification import ChainVerdict, CoveredHead, verify
from portbook.audit.checkpoint_and_hash_tree import (
    CheckpointBody,
    CheckpointMark,
    CheckpointRow,
    CoveredRecords,
    Segment,
    is_signed_by,
    tree_root,
)
from portbook.audit.journal import EXECUTION_STREAM, INTENT_STREAM
from portbook.audit.log_reader_and_follower import (
    Located,
    files_in,
    is_written_to,
    lines_of,
    stream_folder,
    without_outcome,
)
from portbook.provenance.signing import BadKey, PublicKey
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "CHAINED_STREAMS",
    "CheckpointVerdict",
    "CoveredLog",
    "lost_calls",
    "proof_data",
    "verified_streams",
    "verify_checkpoints",
    "written_files",
]

CHAINED_STREAMS: Final = (EXECUTION_STREAM, INTENT_STREAM)

# At most this many calls without an outcome are listed; only many crashes leave more.
_MAX_NAMED: Final = 100


class CoveredLog:
    """What checkpoints know of one log."""

    def __init__(
        self,
        covered: Iterable[CoveredRecords] = (),
        log: str | None = None,
        files: Collection[str] = (),
    ) -> None:
        """Use what is about the folder `log`, or about all folders, where files of several were collected.

        Whatever name one of `files` was covered under is a name of the folder too: a machine may be renamed.
        Names of files are used once, so a file that was pruned is so under any of them.
        """
        known = [*covered]
        names = {log} | {each.log for _, segments in known for each in segments if each.file in files}
        self._heads: dict[str, list[CoveredHead]] = {}
        self._pruned: dict[str, set[str]] = {}
        for checkpoint, segments in known:
            for each in segments:
                if log is None or each.log in names:
                    self._add(each, checkpoint.number)
            body = CheckpointBody.read(checkpoint)
            for file in () if body is None else body.pruned:
                self._pruned.setdefault(file.stream, set()).add(file.file)

    def _add(self, segment: Segment, checkpoint: int) -> None:
        head = Head(segment.file, segment.last, segment.head)
        self._heads.setdefault(segment.stream, []).append(CoveredHead(head, checkpoint))

    def heads_of(self, stream: str) -> list[CoveredHead]:
        """Return the newest record of each file of a stream, at each checkpoint."""
        return self._heads.get(stream, [])

    def pruned_of(self, stream: str) -> set[str]:
        """Return the files of a stream that were removed because `audit.keep` says so."""
        return self._pruned.get(stream, set())

    def uncovered_in(self, verdicts: Mapping[str, ChainVerdict]) -> int:
        """Return how many valid records no checkpoint covers."""
        count = 0
        for stream, verdict in verdicts.items():
            last = {head.file: head.seq for head, _ in self.heads_of(stream)}
            count += sum(max(0, head.seq - last.get(head.file, 0)) for head in verdict.heads)
        return count


def written_files(log_dir: Path) -> set[str]:
    """Return the names of the files of every chained stream; each name is used once, on any machine."""
    return {path.name for stream in CHAINED_STREAMS for path in files_in(stream_folder(log_dir, stream))}


def verified_streams(
    log_dir: Path,
    keep: int,
    noted: Iterable[tuple[str, Head]] = (),
    covered: CoveredLog | None = None,
) -> dict[str, ChainVerdict]:
    """Verify every chained stream; `noted` are records that must still exist, with their stream.

    Read the checkpoints before: records that are written meanwhile are then newer than what these cover.

    Raises `OSError` where a file cannot be read.
    """
    heads, known = list(noted), covered or CoveredLog()
    return {
        stream: verify(
            {path.name: _opener(path) for path in files_in(stream_folder(log_dir, stream))},
            keep,
            [head for of, head in heads if of == stream],
            known.heads_of(stream),
            known.pruned_of(stream),
        )
        for stream in CHAINED_STREAMS
    }


def lost_calls(log_dir: Path) -> list[Located]:
    """Return the intents of calls whose process died.

    Raises `OSError` where a file cannot be read.
    """
    intents = stream_folder(log_dir, INTENT_STREAM)
    found = without_outcome(intents, stream_folder(log_dir, EXECUTION_STREAM))
    return [located for located in found if not is_written_to(intents / located.file)][:_MAX_NAMED]


def proof_data(
    verdicts: Mapping[str, ChainVerdict],
    lost: Iterable[Located],
    checkpoints: CheckpointVerdict | None = None,
    uncovered: int = 0,
) -> dict[str, Any]:
    """Return what was found, as JSON; `uncovered` is how many records no checkpoint covers."""
    is_whole = all(verdict.broken is None for verdict in verdicts.values())
    return {
        "whole": is_whole and (checkpoints is None or checkpoints.broken is None),
        "streams": [_as_data(stream, verdict) for stream, verdict in verdicts.items()],
        "checkpoints": None if checkpoints is None else _as_checkpoints(checkpoints, uncovered),
        "unknown": [_as_place(located) for located in lost],
    }


def _as_checkpoints(verdict: CheckpointVerdict, uncovered: int) -> dict[str, Any]:
    broken = verdict.broken
    return {
        "whole": broken is None,
        "checkpoints": verdict.checkpoints,
        "newest": None if verdict.newest is None else str(verdict.newest),
        "at": verdict.at,
        "signed_by": verdict.signed_by,
        "pruned": verdict.is_pruned,
        "uncovered": uncovered,
        "broken": None
        if broken is None
        else {"checkpoint": broken.number, "problem": broken.problem, "message": broken.sentence},
    }


def _opener(path: Path) -> Callable[[], Iterator[bytes]]:
    return lambda: lines_of(path)


def _as_data(stream: str, verdict: ChainVerdict) -> dict[str, Any]:
    broken = verdict.broken
    return {
        "stream": stream,
        "whole": broken is None,
        "files": verdict.files,
        "records": verdict.records,
        "head": None if verdict.head is None else f"{stream}/{verdict.head}",
        "heads": [f"{stream}/{head}" for head in verdict.heads],
        "pruned": verdict.is_pruned,
        "cut": list(verdict.cut),
        "broken": None
        if broken is None
        else {
            "file": broken.file,
            "line": broken.line,
            "seq": broken.seq,
            "problem": broken.problem,
            "message": broken.sentence,
        },
    }


def _as_place(located: Located) -> dict[str, Any]:
    named = {name: located.record.get(name) for name in ("request_id", "tool_id", "timestamp")}
    return {"file": located.file, "line": located.line, **named}


# Checkpoints, verified.

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
