"""`CheckpointStore`: checkpoints over the records of every writer of this store.

A writer is one file of a chained stream. It publishes segments: its next records, from the first to the last.
A checkpoint covers all segments that were published since the one before it. Everything happens in one
transaction, so any number of processes may publish, and one of them makes each checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from portbook.stores.connection_and_clock import Connection
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["CheckpointRow", "CheckpointStore", "CoveredRecords", "MakeCheckpoint", "PrunedFile", "Segment"]


class Segment(NamedTuple):
    """The records of one writer from `first` to `last`."""

    log: str
    """The folder of the records, after the name of its machine where machines share the store."""
    stream: str
    file: str
    first: int
    last: int
    head: str
    """The hash of the last record: it follows from every record before it."""
    records: str | None
    """The root of the tree over their hashes; None where the writer was killed long before."""


class PrunedFile(NamedTuple):
    """A file that was removed because `audit.keep` says so."""

    log: str
    stream: str
    file: str


class CheckpointRow(NamedTuple):
    """A checkpoint, as it is stored."""

    number: int
    body: str
    """What was hashed and signed: JSON."""
    hash: str
    key_id: str | None = None
    signature: str | None = None


class CoveredRecords(NamedTuple):
    """A checkpoint and the segments that it covers, in the order of its tree."""

    checkpoint: CheckpointRow
    segments: tuple[Segment, ...]


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
