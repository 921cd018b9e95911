"""Whether the log of a folder is whole: the chain of each stream, checkpoints, calls without an outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from portbook.audit.chain import Head
from portbook.audit.chain_verification import ChainVerdict, CoveredHead, verify
from portbook.audit.checkpoint import CheckpointBody
from portbook.audit.checkpoint_verification import CheckpointVerdict
from portbook.audit.journal import EXECUTION_STREAM, INTENT_STREAM
from portbook.audit.log_reader import (
    Located,
    files_in,
    is_written_to,
    lines_of,
    stream_folder,
    without_outcome,
)
from portbook.stores.checkpoints import CoveredRecords, Segment

__all__ = ["CHAINED_STREAMS", "CoveredLog", "lost_calls", "proof_data", "verified_streams", "written_files"]

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
