"""`Journal`: writes every record in its two views, each in its own stream, and the intents before them.

A call writes the execution view (numbered and chained), the envelope view, and a copy of the execution view
to standard error where the operator asked for it. The file of intents is created with the first intent: a
boundary whose tools only read has none. What decided, which is the same for many calls, is written once.

A stream has one JSON Lines file per run, and a link to the latest: the newest file of a server that still
runs. Where none runs, it leads to the file of the latest run of any kind: a short command beside a server
does not move it. A server passes the link on when it ends, and takes it from one that was killed.

Records are one `write(2)` to a file opened for appending, made before their answers are sent: a killed
process loses no acknowledged record. The records of a chained stream are numbered, and each holds the hash of
its predecessor; the first record of a file names the last records of earlier files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from portbook.audit.chain import HASH_DIGITS, Head, Links, head_of, links_of
from portbook.audit.log_reader_and_follower import (
    files_in,
    first_and_last_line,
    is_served_to,
    lines_from_end,
    names_in,
    stream_folder,
)
from portbook.audit.record_views_and_fields import Pieces, RecordLines, as_pieces, whole_views
from portbook.canonical import json_bytes
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import openssl_sha256, own_sha256

__all__ = [
    "BASIS_STREAM",
    "ENVELOPE_STREAM",
    "EXECUTION_STREAM",
    "INTENT_STREAM",
    "ChainedSink",
    "Journal",
    "JsonlSink",
    "WrittenRecords",
    "chained",
    "chained_lines",
]

ENVELOPE_STREAM: Final = "envelope_validation"
EXECUTION_STREAM: Final = "execution"
INTENT_STREAM: Final = "intent"
BASIS_STREAM: Final = "basis"

# The longest time until a full disk, removed files or the link of a killed server are noticed.
_LOOK_S: Final = 1.0

# The records of a file that are hashed without OpenSSL: a server that is called seldom does not load it.
_FEW: Final = 64

# Free space that a record needs after a failure: more than a record with its violations usually takes.
_ROOM: Final = 16_384


class WrittenRecords(NamedTuple):
    """Records of one file that no checkpoint covers yet."""

    stream: str
    file: str
    first: int
    """The number of the first of them."""
    hashes: list[bytes]


class Journal:
    """Writes records to files under one folder."""

    def __init__(
        self,
        log_dir: Path,
        *,
        started: str,
        run: str,
        keep: int,
        to_stderr: bool = False,
        is_server: bool = False,
    ) -> None:
        """Open this run's files; `is_server` if it serves until it is stopped.

        Raises `OSError` where the folder cannot be written.
        """
        self._open_chained = partial(
            ChainedSink, log_dir, started=started, run=run, keep=keep, is_server=is_server
        )
        self._open = partial(JsonlSink, log_dir, started=started, run=run, keep=keep, is_server=is_server)
        self._envelope = self._open(ENVELOPE_STREAM)
        self._execution = self._open_chained(EXECUTION_STREAM)
        self._intents: ChainedSink | None = None
        self._bases: JsonlSink | None = None
        self._is_collecting = False
        self._to_stderr = to_stderr
        self._looked = time.monotonic()

    def look(self) -> None:
        """Check the files, but not on every call: that would cost as much as writing a record.

        Raises `OSError` where the disk is full or a file was removed.
        """
        now = time.monotonic()
        if now - self._looked > _LOOK_S:
            for sink in (self._execution, self._envelope, self._intents):
                if sink is not None:
                    sink.look()
            for sink in self._sinks():
                sink.lead()
            self._looked = now

    def mend(self) -> None:
        """Recover after a failed write.

        Raises `OSError` where there is still no space for a record.
        """
        for sink in self._sinks():
            sink.mend()

    def intend(self, intent: bytes) -> None:
        """Write the intent of a call with effects, before it runs.

        Raises `OSError` where it cannot be written.
        """
        if self._intents is None:
            self._intents = self._open_chained(INTENT_STREAM)
            if self._is_collecting:
                self._intents.collect()
        self._intents.write(intent)

    def explain(self, basis: bytes) -> None:
        """Write what a basis that records name is made of. Not chained: it is its own digest.

        Raises `OSError` where it cannot be written.
        """
        if self._bases is None:
            self._bases = self._open(BASIS_STREAM)
        self._bases.write(basis)

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Write both views of a record.

        Raises `OSError` where they cannot be written.
        """
        for error in self.write_all((as_pieces(envelope, execution),)).values():
            raise error

    def write_all(self, records: Sequence[RecordLines]) -> Mapping[int, OSError]:
        """Write both lines of each record, a stream at a time; return what failed, by its place."""
        envelopes, executions = zip(*records, strict=True)
        failed = self._execution.write_all(executions)
        if failed:
            kept = [place for place in range(len(records)) if place not in failed]
            lost = self._envelope.write_all([envelopes[place] for place in kept])
            failed |= {kept[at]: error for at, error in lost.items()}
        else:
            failed = self._envelope.write_all(envelopes)
        if self._to_stderr:
            kept = [record for place, record in enumerate(records) if place not in failed]
            _copy_to_stderr(whole_views(record)[1] for record in kept)
        return failed

    def collect(self) -> None:
        """Keep the hashes of records for checkpoints, which take them; call it before the first record."""
        self._is_collecting = True
        self._execution.collect()

    def take(self) -> list[WrittenRecords]:
        """Return what was written to each chained stream since the last call."""
        found = [
            WrittenRecords(stream, sink.path.name, *sink.take())
            for stream, sink in ((EXECUTION_STREAM, self._execution), (INTENT_STREAM, self._intents))
            if sink is not None
        ]
        return [each for each in found if each.hashes]

    def take_pruned(self) -> list[tuple[str, str]]:
        """Return the stream and the name of each chained file that was pruned since the last call."""
        found: list[tuple[str, str]] = []
        for stream, sink in ((EXECUTION_STREAM, self._execution), (INTENT_STREAM, self._intents)):
            if sink is not None:
                found += ((stream, name) for name in sink.pruned)
                sink.pruned = []
        return found

    def close(self) -> None:
        """Close the files. Nothing is buffered, so nothing is flushed."""
        for sink in self._sinks():
            sink.close()

    def _sinks(self) -> list[JsonlSink]:
        opened = self._envelope, self._execution, self._intents, self._bases
        return [sink for sink in opened if sink is not None]


def _copy_to_stderr(executions: Iterable[bytes]) -> None:
    """Copy records that are already written; a failure here does not affect their calls."""
    if sys.stderr is None:  # it was closed when the process started
        return
    with contextlib.suppress(OSError, ValueError):  # its reader has ended, or it was closed
        for execution in executions:
            sys.stderr.write(f"{execution.decode()}\n")


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
        try:
            served = None if self._is_server else self._newest_served()
            self._link_latest(served or self.path)
        except OSError:  # nothing is left behind that the next attempt would stumble over
            os.close(file)
            self.path.unlink(missing_ok=True)
            raise
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
        folder = self.path.parent
        for name in reversed(names_in(folder)):
            if name != self.path.name and self._is_served(folder / name):
                return folder / name
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
        self._keep((self.pieces_of(record),))

    def pieces_of(self, record: bytes) -> Sequence[bytes]:
        """Return the pieces of the line of `record`, a JSON object."""
        return as_pieces(record, b"")[0]

    def write_all(self, records: Sequence[Sequence[bytes]]) -> dict[int, OSError]:
        """Write records, in pieces, at once; return why some of them could not be written, by their place."""
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
            self._begin_anew()
        size = self._size
        self._append(b" " * _ROOM)
        os.ftruncate(self._file, size)
        self._size = size

    def _begin_anew(self) -> None:
        """Go on in a file that was started again."""

    def look(self) -> None:
        """Check that there is space for a record and that the file still exists.

        Raises `OSError` where the disk is full, or the file was removed: writes to it would succeed and be
        lost.
        """
        if self._is_removed():
            raise FileNotFoundError(errno.ENOENT, "the file was removed with its records", str(self.path))
        disk = os.fstatvfs(self._file)
        if disk.f_bavail * disk.f_frsize < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def _is_removed(self) -> bool:
        return os.fstat(self._file).st_nlink == 0

    def _keep(self, records: Iterable[Sequence[bytes]]) -> None:
        """Append records, all or none of them.

        Raises `OSError` where they cannot be written.
        """
        pieces: list[bytes] = []
        for record in records:
            pieces += record  # a fifth quicker than to chain them
        self._append(b"".join(pieces))

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

    def _begin_anew(self) -> None:
        """Begin the chain again, with a link to the lost record: at once, whatever fails after it."""
        if self._seq:
            self._prev = str(Links((Head(self.path.name, self._seq, self._prev),)))
            self._seq = 0
            self._hashes = None  # the numbers begin anew, under a name whose records are gone

    def pieces_of(self, record: bytes) -> Pieces:
        """Return the pieces of the line of `record`, a JSON object with members."""
        return as_pieces(b"", record)[1]

    def _keep(self, records: Iterable[Any]) -> None:
        """Append records as the next of the chain, all or none: a failed write leaves no gap in it.

        Raises `OSError` where they cannot be written.
        """
        hashes = self._hashes
        lines, seq, prev = chained_lines(records, self._seq, self._prev, hashes)
        try:
            self._append(lines)
        except OSError:
            if hashes is not None:
                del hashes[len(hashes) - (seq - self._seq) :]
            raise
        self._seq, self._prev = seq, prev


def chained(
    records: Iterable[bytes], seq: int, prev: str, hashes: list[bytes] | None = None
) -> tuple[bytes, int, str]:
    """Return `records`, JSON objects with members, as lines of the chain, and the last number and hash.

    `seq` and `prev` are the number and the hash of the record before them. The hash of each is added to
    `hashes`.
    """
    return chained_lines((as_pieces(b"", record)[1] for record in records), seq, prev, hashes)


def chained_lines(
    records: Iterable[Pieces], seq: int, prev: str, hashes: list[bytes] | None = None
) -> tuple[bytes, int, str]:
    """Return records, in pieces, as `chained` does."""
    lines: list[bytes] = []
    before = prev.encode()
    if len(prev) != HASH_DIGITS or b"#" in before:  # the links of a file's first record may need escapes
        before = json_bytes(prev)[1:-1]
    hashed = own_sha256 if seq < _FEW else openssl_sha256()
    for pieces in records:
        seq += 1
        pieces[0], pieces[1] = b'{"seq":%d,"prev":"' % seq, before
        line = b"".join(pieces)
        digest = hashed(line)
        digest.update(b"}")  # the line without its hash is a JSON object, too
        before = digest.hexdigest().encode()
        lines += (line, b',"hash":"', before, b'"}\n')
        if hashes is not None:
            hashes.append(before)
    return b"".join(lines), seq, before.decode()


def _prune(folder: Path, keep: int) -> tuple[str | None, list[str]]:
    """Remove all but the newest `keep` files.

    Return the oldest of those kept, if there were more, and the names of those that were removed.
    """
    names, removed = names_in(folder), list[str]()
    for name in names[:-keep]:
        path = folder / name
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a running process writes to it
            if os.fstat(file.fileno()).st_nlink:  # else it is pruned, and the name may be a new file's
                path.unlink()
                removed.append(name)
    return names[-keep] if len(names) > keep else None, removed


def _loose_heads(folder: Path, keep: int) -> tuple[Head, ...]:
    """Return the last record of each file, except those that a file which will be kept already follows."""
    heads: list[Head] = []
    followed: set[Head] = set()
    files = files_in(folder)
    for number, path in enumerate(files):
        with contextlib.suppress(OSError):  # a different process prunes at the same time
            first, last = first_and_last_line(path)
            # The last one that was not altered: nearly always the last.
            lines = chain((last,), lines_from_end(path)) if last else ()
            heads += islice(filter(None, (_valid_head(path, line) for line in lines)), 1)
            if len(files) - number < keep:  # it will not be pruned when the new file exists
                followed.update(links_of(first).heads)
    return tuple(head for head in heads if head not in followed)


def _valid_head(path: Path, line: bytes) -> Head | None:
    """Return the head in a line, if a record can name it: a foreign name of a file may be no valid link."""
    head = head_of(path.name, line)
    return None if head is None else Head.read(str(head))
