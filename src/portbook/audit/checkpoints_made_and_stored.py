"""Makes checkpoints over what a journal wrote, stores them, and deletes them with pruned files.

- `CheckpointMaker`: publishes what a journal wrote, and makes checkpoints over it. Records whose process was
  killed before it published them are published by the next process that serves.
- `CheckpointStore`: the checkpoints over the records of every writer of a store. A checkpoint covers all
  segments that were published since the one before it. Everything happens in one transaction, so any number
  of processes may publish, and one of them makes each checkpoint.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Final

from portbook.audit.chain import head_of
from portbook.audit.checkpoint_and_hash_tree import (
    CheckpointBody,
    CheckpointRow,
    CoveredRecords,
    PrunedFile,
    Segment,
    checkpoint_of,
    root_of,
)
from portbook.audit.journal import EXECUTION_STREAM, INTENT_STREAM, Journal, WrittenRecords
from portbook.audit.log_reader_and_follower import files_in, is_written_to, lines_from_end, stream_folder
from portbook.clock import Clock, until
from portbook.stores.connection_clock_and_errors import Connection

if TYPE_CHECKING:
    from portbook.provenance.signing import Signer
    from portbook.stores.store_port import StorePort

__all__ = ["CheckpointMaker", "CheckpointStore", "log_name"]

# The most records of a killed process whose tree is still made: it served longer without a store.
_MAX_LEFT: Final = 10_000


def log_name(log_dir: Path, *, spans_machines: bool = False) -> str:
    """Return what a folder of records is called in checkpoints.

    Where machines share them, folders have the same path, as in containers: the name of the machine tells
    them apart.
    """
    folder = str(log_dir.resolve())
    return f"{os.uname().nodename}:{folder}" if spans_machines else folder


class CheckpointMaker:
    """Covers the records of one journal. Not thread-safe: it belongs to the thread that writes records."""

    def __init__(
        self,
        journal: Journal,
        store: CheckpointStore,
        log_dir: Path,
        clock: Clock,
        signer: Callable[[], Signer | None],
        interval_s: float,
    ) -> None:
        """Make a checkpoint only where the newest one, of any process, is at least `interval_s` old."""
        self._journal = journal
        self._store = store
        self._log_dir = log_dir
        self._log = log_name(log_dir, spans_machines=store.spans_machines)
        self._clock = clock
        self._signer = signer
        self._interval_s = interval_s
        self._segments: list[Segment] = []
        """What was written and is not published yet."""
        self._pruned: list[PrunedFile] = []
        self._is_waiting = False
        """Whether something is published and not covered yet."""

    def collect(self) -> None:
        """Take what was written and pruned since the last call."""
        self._segments += [_segment(self._log, each) for each in self._journal.take()]
        self._pruned += [PrunedFile(self._log, *each) for each in self._journal.take_pruned()]

    def cover(self, *, is_last: bool = False) -> Future[bool] | None:
        """Publish what was collected, and make a checkpoint if none was made lately, or if this `is_last`.

        Return None if there is nothing to cover. `settle` takes the result.

        Raises `StoreError` where the store cannot be opened.
        """
        if not (self._segments or self._pruned or self._is_waiting):
            return None
        now, pruned, signer = self._clock.now(), list(self._pruned), self._signer()

        def make(
            newest: CheckpointRow | None, waiting: Sequence[Segment], floor: int | None
        ) -> CheckpointRow | None:
            if not (waiting or pruned) or (not is_last and self._is_early(newest, now)):
                return None
            return checkpoint_of(newest, waiting, pruned, floor, now, signer)

        return self._store.cover(list(self._segments), pruned, make)

    def _is_early(self, newest: CheckpointRow | None, now: str) -> bool:
        body = None if newest is None else CheckpointBody.read(newest)
        # Not where it is in the future: the clock of this machine was set back.
        return body is not None and 0 <= until(body.at, now) < self._interval_s

    def settle(self, covered: Future[bool]) -> None:
        """Take the result of `cover`; what could not be stored is published with the next one.

        Raises `StoreError` where it could not be stored.
        """
        is_covered = covered.result()
        self._segments.clear()
        self._is_waiting = not is_covered
        if is_covered:
            self._pruned.clear()

    def left_behind(self) -> list[Segment]:
        """Return what processes that ended have left uncovered. Reads the end of every file; thread-safe.

        Raises `StoreError` or `OSError` where that cannot be read.
        """
        return list(_left_in(self._log_dir, self._log, self._store.last_published()))

    def adopt(self, left: Iterable[Segment]) -> None:
        """Collect what others have left behind."""
        self._segments += left


def _segment(log: str, written: WrittenRecords) -> Segment:
    stream, file, first, hashes = written
    last = first + len(hashes) - 1
    return Segment(log, stream, file, first, last, hashes[-1].decode(), root_of(hashes))


def _left_in(log_dir: Path, log: str, known: Mapping[tuple[str, str], tuple[str, int]]) -> Iterator[Segment]:
    """Yield a segment for each file that nobody writes to and whose last records are not `known`.

    A file goes on under the name of the folder that it began under: the machine may have been renamed since.
    """
    for stream in (EXECUTION_STREAM, INTENT_STREAM):
        for path in files_in(stream_folder(log_dir, stream)):
            with contextlib.suppress(FileNotFoundError):  # a different process prunes at the same time
                if not is_written_to(path):
                    name, last = known.get((stream, path.name), (log, 0))
                    yield from _left_of(path, name, stream, last)


def _left_of(path: Path, log: str, stream: str, known: int) -> Iterator[Segment]:
    hashes: list[bytes] = []
    last = head = None
    for line in lines_from_end(path):
        found = head_of(path.name, line)
        if found is None or found.seq <= known:  # altered, which `verify` says; or covered
            break
        if last is None:
            last, head = found.seq, found.hash
        hashes.append(found.hash.encode())
        if len(hashes) > _MAX_LEFT:
            break
    if last is not None and head is not None:
        is_whole = len(hashes) == last - known
        yield Segment(
            log, stream, path.name, known + 1, last, head, root_of(hashes[::-1]) if is_whole else None
        )


# The checkpoints of a store.

# Makes the checkpoint after one, over segments; the last argument is the oldest number that is kept, where
# older ones are deleted with it. None if it is too early for a checkpoint.
MakeCheckpoint = Callable[[CheckpointRow | None, Sequence[Segment], int | None], CheckpointRow | None]

_SEGMENT: Final = ", ".join(Segment._fields)
_CHECKPOINT: Final = ", ".join(CheckpointRow._fields)
_COVERED: Final = (
    f"SELECT checkpoint, {_SEGMENT} FROM audit_segment "  # noqa: S608 - constant names
    "WHERE checkpoint IS NOT NULL ORDER BY checkpoint, log, stream, file, first"
)
_WAITING: Final = (
    f"SELECT {_SEGMENT} FROM audit_segment "  # noqa: S608 - as above
    "WHERE checkpoint IS NULL ORDER BY log, stream, file, first"
)
_NEWEST: Final = f"SELECT {_CHECKPOINT} FROM audit_checkpoint ORDER BY number DESC LIMIT 1"  # noqa: S608 - as above
_ALL: Final = f"SELECT {_CHECKPOINT} FROM audit_checkpoint ORDER BY number"  # noqa: S608 - as above


class CheckpointStore:
    """The checkpoints of a store."""

    def __init__(self, store: StorePort) -> None:
        self._store = store

    @property
    def spans_machines(self) -> bool:
        """Return whether writers on several machines share the checkpoints."""
        return self._store.spans_machines

    def cover(
        self, segments: Sequence[Segment], pruned: Sequence[PrunedFile], make: MakeCheckpoint
    ) -> Future[bool]:
        """Publish segments, and make a checkpoint over all that wait for one.

        Return whether none waits any more. A segment that does not continue its writer's last one is dropped:
        a different process has published it.

        Raises `StoreError` where the store cannot be opened; the future raises it where it cannot be written.
        """

        def write(connection: Connection) -> bool:
            for segment in segments:
                _publish(connection, segment)
            return _covered(connection, pruned, make)

        return self._store.submit(write, lock="checkpoints")

    def covered(self) -> list[CoveredRecords]:
        """Return every checkpoint with its segments, oldest first.

        Raises `StoreError` where the store cannot be read.
        """

        def find(connection: Connection) -> list[CoveredRecords]:
            segments: dict[int, list[Segment]] = {}
            for number, *values in connection.execute(_COVERED):
                segments.setdefault(number, []).append(Segment(*values))
            return [
                CoveredRecords(CheckpointRow(*row), tuple(segments.get(row[0], ())))
                for row in connection.execute(_ALL)
            ]

        nothing: list[CoveredRecords] = []
        return self._store.read(find, nothing)

    def last_published(self) -> dict[tuple[str, str], tuple[str, int]]:
        """Return the log and the last published record of each writer, by its stream and file.

        Raises `StoreError` where the store cannot be read.
        """

        def find(connection: Connection) -> dict[tuple[str, str], tuple[str, int]]:
            found = connection.execute(
                "SELECT stream, file, log, max(last) FROM audit_segment GROUP BY log, stream, file "
                "ORDER BY max(last)"
            )
            return {(str(stream), str(file)): (str(log), int(last)) for stream, file, log, last in found}

        nothing: dict[tuple[str, str], tuple[str, int]] = {}
        return self._store.read(find, nothing)


def _publish(connection: Connection, segment: Segment) -> None:
    last = connection.execute(
        "SELECT last FROM audit_segment WHERE log = ? AND stream = ? AND file = ? "
        "ORDER BY first DESC LIMIT 1",
        (segment.log, segment.stream, segment.file),
    ).get
    if segment.first == (last or 0) + 1:
        connection.execute(
            f"INSERT INTO audit_segment ({_SEGMENT}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - as above
            tuple(segment),
        )


def _covered(connection: Connection, pruned: Iterable[PrunedFile], make: MakeCheckpoint) -> bool:
    waiting = [Segment(*row) for row in connection.execute(_WAITING)]
    for file in pruned:
        # Under any name of the folder: the machine may have been renamed since.
        connection.execute(
            "UPDATE audit_segment SET is_pruned = 1 WHERE stream = ? AND file = ?", (file.stream, file.file)
        )
    row = connection.execute(_NEWEST).fetchone()
    newest = None if row is None else CheckpointRow(*row)
    floor = _floor(connection, newest)
    made = make(newest, waiting, floor)
    if made is None:
        return not waiting
    connection.execute(
        f"INSERT INTO audit_checkpoint ({_CHECKPOINT}) VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - constant names
        tuple(made),
    )
    connection.execute("UPDATE audit_segment SET checkpoint = ? WHERE checkpoint IS NULL", (made.number,))
    if floor is not None:
        connection.execute("DELETE FROM audit_segment WHERE checkpoint < ?", (floor,))
        connection.execute("DELETE FROM audit_checkpoint WHERE number < ?", (floor,))
    return True


def _floor(connection: Connection, newest: CheckpointRow | None) -> int | None:
    """Return the oldest checkpoint to keep, if there are older ones: it covers a file that was not pruned."""
    if newest is None:
        return None
    oldest, kept = connection.execute(
        "SELECT (SELECT min(number) FROM audit_checkpoint), "
        "(SELECT min(checkpoint) FROM audit_segment WHERE is_pruned = 0)"
    ).get
    floor: int = newest.number + 1 if kept is None else kept
    return floor if floor > oldest else None
