"""Sinks for records: JSON Lines files, one per run, with a link to the latest.

The link leads to the newest file of a server that still runs. Where none runs, it leads to the file of the
latest run of any kind: a short command beside a server does not move it. A server passes the link on when it
ends, and takes it from one that was killed.

Records are one `write(2)` to a file opened for appending, made before their answers are sent: a killed
process loses no acknowledged record. The records of a chained stream are numbered, and each holds the hash of
its predecessor; the first record of a file names the last records of earlier files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from portbook.audit.chain import Head, Links, chained, head_of, links_of
from portbook.audit.log_reader import files_in, is_served_to, lines_from_end, lines_of, stream_folder
from portbook.model import JSONObject

__all__ = ["ENVELOPE_STREAM", "ChainedSink", "JsonlSink", "MemorySink", "NoSink"]

ENVELOPE_STREAM: Final = "envelope_validation"

# Free space that a record needs after a failure: more than a record with its violations usually takes.
_ROOM: Final = 16_384


class JsonlSink:
    """Appends records to `<log_dir>/mcp_server/<stream>/<start time>.<run>.jsonl`."""

    def __init__(
        self, log_dir: Path, stream: str, *, started: str, run: str, keep: int, is_server: bool = False
    ) -> None:
        """Open this run's file, set the latest link, and prune all files but the newest `keep`.

        Raises `OSError` where the folder cannot be written.
        """
        folder = stream_folder(log_dir, stream)
        # No colons: not every file system allows them. The names still sort by time.
        self.path = folder / f"{started.replace(':', '-')}.{run}.jsonl"
        self._latest = f"{stream}.latest.jsonl"
        self._is_server = is_server
        self._file = self._open()
        self._oldest, self.pruned = _prune(folder, keep)
        """The oldest file that is kept, if there were more, and the names of those that were removed."""

    def _open(self) -> int:
        while True:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
            # Keeps other processes from pruning it; an exclusive lock also tells them that it is a server's.
            fcntl.flock(file, fcntl.LOCK_EX if self._is_server else fcntl.LOCK_SH)
            if os.fstat(file).st_nlink:
                break
            os.close(file)  # a process that started at the same time has pruned it before it was locked
        self._size = 0
        served = None if self._is_server else self._newest_served()
        self._link_latest(served or self.path)
        return file

    def lead(self) -> None:
        """Take the link from a server that was killed, and so could not pass it on."""
        if not self._is_server:
            return
        with contextlib.suppress(OSError):  # the records are safe; a later look sets the link
            latest = self.path.with_name(self._latest).readlink().name
            if latest != self.path.name and not self._is_served(self.path.with_name(latest)):
                served = self._newest_served()
                self._link_latest(self.path if served is None else max(served, self.path))

    def _newest_served(self) -> Path | None:
        """Return the newest file of a server that runs, except this one."""
        for path in reversed(files_in(self.path.parent)):
            if path != self.path and self._is_served(path):
                return path
        return None

    def _is_served(self, path: Path) -> bool:
        try:
            return is_served_to(path)
        except OSError:  # it was pruned
            return False

    def _link_latest(self, target: Path) -> None:
        # Created under a temporary name and renamed, so that the link always points to a file.
        draft = self.path.with_name(f".{self._latest}.{self.path.stem}")
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        draft.symlink_to(target.name)
        draft.replace(self.path.with_name(self._latest))

    def write(self, record: bytes) -> None:
        """Write `record`, a JSON object. Once this returns, it survives a kill of the process.

        Raises `OSError` where it cannot be written.
        """
        self._keep((record,))

    def write_all(self, records: Sequence[bytes]) -> dict[int, OSError]:
        """Write records at once; return why some of them could not be written, by their place."""
        try:
            self._keep(records)
        except OSError as error:
            if len(records) == 1:
                return {0: error}
            # One by one: there may be room for some of them, and the others must be known.
            found = ((place, self.write_all((record,))) for place, record in enumerate(records))
            return {place: failed[0] for place, failed in found if failed}
        return {}

    def mend(self) -> None:
        """Recover after a failed write.

        Raises `OSError` where there is still no space for a record.
        """
        if self._is_removed():
            removed = self._file
            self._file = self._open()
            os.close(removed)
        size = self._size
        self._append(b" " * _ROOM)
        os.ftruncate(self._file, size)
        self._size = size

    def look(self) -> None:
        """Check that there is space for a record and that the file still exists.

        Raises `OSError` where the disk is full, or the file was removed: writes to it would succeed and be
        lost.
        """
        if self._is_removed():
            raise FileNotFoundError(errno.ENOENT, "the file of records was removed", str(self.path))
        disk = os.fstatvfs(self._file)
        if disk.f_bavail * disk.f_frsize < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def _is_removed(self) -> bool:
        return os.fstat(self._file).st_nlink == 0

    def _keep(self, records: Iterable[bytes]) -> None:
        """Append records, all or none of them.

        Raises `OSError` where they cannot be written.
        """
        self._append(b"\n".join((*records, b"")))

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            if written:  # remove what is incomplete: it could not be parsed
                os.ftruncate(self._file, self._size)
            raise
        self._size += written

    def close(self) -> None:
        """Close the file. Nothing is buffered, so nothing is flushed.

        The link of a server that ends leads on to the newest server that still runs, if there is one.
        """
        os.close(self._file)
        served = self._newest_served() if self._is_server else None
        if served is not None:
            with contextlib.suppress(OSError):  # the records are safe; the next run sets the link
                self._link_latest(served)


class ChainedSink(JsonlSink):
    """A `JsonlSink` whose records have a number, the hash of their predecessor, and their own hash."""

    def __init__(
        self, log_dir: Path, stream: str, *, started: str, run: str, keep: int, is_server: bool = False
    ) -> None:
        """Open this run's file; its first record will link to all heads that no other file links to.

        Raises `OSError` where the folder cannot be written.
        """
        before = _loose_heads(stream_folder(log_dir, stream), keep)  # before old files are pruned
        super().__init__(log_dir, stream, started=started, run=run, keep=keep, is_server=is_server)
        self._seq = 0
        self._prev = str(Links(before, self._oldest))
        self._hashes: list[bytes] | None = None

    def collect(self) -> None:
        """Keep the hash of each record from now on, until `take` is called. Call it before the first."""
        self._hashes = []

    def take(self) -> tuple[int, list[bytes]]:
        """Return the number of the first record since the last call, and the hashes of all of them."""
        if not self._hashes:
            return self._seq + 1, []
        found, self._hashes = self._hashes, []
        return self._seq - len(found) + 1, found

    def mend(self) -> None:
        """Recover after a failed write; a removed file is started again, and links to the lost record.

        Raises `OSError` where there is still no space for a record.
        """
        is_removed = self._is_removed()
        super().mend()
        if is_removed and self._seq:
            self._prev = str(Links((Head(self.path.name, self._seq, self._prev),)))
            self._seq = 0
            self._hashes = None  # the numbers begin anew, under a name whose records are gone

    def _keep(self, records: Iterable[bytes]) -> None:
        """Append records as the next of the chain, all or none: a failed write leaves no gap in it.

        Raises `OSError` where they cannot be written.
        """
        hashes = self._hashes
        lines, seq, prev = chained(records, self._seq, self._prev, hashes)
        try:
            self._append(lines)
        except OSError:
            if hashes is not None:
                del hashes[len(hashes) - (seq - self._seq) :]
            raise
        self._seq, self._prev = seq, prev


class MemorySink:
    """Keeps records in lists, for tests."""

    def __init__(self) -> None:
        self.records: list[JSONObject] = []
        self.executions: list[JSONObject] = []
        self.intents: list[JSONObject] = []
        self.bases: list[JSONObject] = []

    def look(self) -> None:
        """Do nothing: memory cannot be removed."""

    def mend(self) -> None:
        """Do nothing: memory does not fill up."""

    def intend(self, intent: bytes) -> None:
        """Keep `intent`."""
        self.intents.append(json.loads(intent))

    def explain(self, basis: bytes) -> None:
        """Keep `basis`."""
        self.bases.append(json.loads(basis))

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Keep both views."""
        self.records.append(json.loads(envelope))
        self.executions.append(json.loads(execution))

    def write_all(self, records: Sequence[tuple[bytes, bytes]]) -> Mapping[int, OSError]:
        """Keep both views of each record."""
        for envelope, execution in records:
            self.write(envelope, execution)
        return {}

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class NoSink:
    """Drops all records, for use without files."""

    def look(self) -> None:
        """Do nothing: there is nothing to check."""

    def mend(self) -> None:
        """Do nothing: nothing can fail."""

    def intend(self, intent: bytes) -> None:
        """Drop `intent`."""

    def explain(self, basis: bytes) -> None:
        """Drop `basis`."""

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Drop both views."""

    def write_all(self, records: Sequence[tuple[bytes, bytes]]) -> Mapping[int, OSError]:
        """Drop all records."""
        return {}

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _prune(folder: Path, keep: int) -> tuple[str | None, list[str]]:
    """Remove all but the newest `keep` files.

    Return the oldest of those kept, if there were more, and the names of those that were removed.
    """
    files, removed = files_in(folder), list[str]()
    for path in files[:-keep]:
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a running process writes to it
            path.unlink()
            removed.append(path.name)
    return files[-keep].name if len(files) > keep else None, removed


def _loose_heads(folder: Path, keep: int) -> tuple[Head, ...]:
    """Return the last record of each file, except those that a file which will be kept already follows."""
    heads: list[Head] = []
    followed: set[Head] = set()
    files = files_in(folder)
    for number, path in enumerate(files):
        with contextlib.suppress(OSError):  # a different process prunes at the same time
            heads += _last(path)
            if len(files) - number < keep:  # it will not be pruned when the new file exists
                followed.update(links_of(next(lines_of(path), b"")).heads)
    return tuple(head for head in heads if head not in followed)


def _last(path: Path) -> Iterator[Head]:
    for line in lines_from_end(path):
        head = head_of(path.name, line)
        if head and Head.read(str(head)):  # a foreign file name may not be a valid link
            yield head
            return
