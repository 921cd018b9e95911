"""`UnshippedRecords`: reads the records that were not shipped yet, from the files that journals write.

It reads what is on disk, so that no call waits for it, and what a process left behind when it was killed is
shipped by the next one. It never holds more than one batch in memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from portbook.audit.journal import EXECUTION_STREAM, INTENT_STREAM
from portbook.audit.log_reader_and_follower import is_written_to, record_of, stream_folder
from portbook.audit.shipping.receiver_and_address import ShippedRecord
from portbook.text.named_tuple import NamedTuple

__all__ = ["RecordBatch", "ShippedPositions", "UnshippedRecords"]

# `ShippedPositions`: how far each file of records was shipped to one receiver; survives a kill.
#
# A line is appended for each batch that arrived; of several lines of one file the last counts. The process
# that holds the lock ships for all that write to the same folder. When it ends, the next one goes on.

# The file is written anew at this size: half a day of one batch in a second.
_MAX_BYTES: Final = 1 << 22


class ShippedPositions:
    """The positions of one receiver. The first use tries to take the lock."""

    def __init__(self, folder: Path, receiver: str) -> None:
        """Keep the positions in `folder`; `receiver` is a name for files."""
        self._folder = folder
        self._path = folder / f"{receiver}.positions"
        self._lock_path = folder / f"{receiver}.lock"
        self._lock: int | None = None
        self._file: int | None = None
        self._is_torn = False
        self._offsets: dict[str, int] = {}

    def hold(self) -> bool:
        """Return whether this process ships; another one may.

        Raises `OSError` where the folder cannot be written.
        """
        if self._lock is not None:
            return True
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        try:
            self._offsets = _read(self._path)
            self._rewrite()
        except BaseException:
            self.close()  # else the next attempt would go on without a file
            raise
        return True

    def of(self, name: str) -> int:
        """Return how many bytes of a file were shipped."""
        return self._offsets.get(name, 0)

    def note(self, name: str, offset: int) -> None:
        """Write down how far a file was shipped.

        Raises `OSError` where that cannot be written: it is then shipped again.
        """
        self._offsets[name] = offset
        if self._file is not None:
            line = _line(name, offset)
            # After a line that was cut off, the next one would be read as a part of it.
            self._is_torn = self._is_torn or os.write(self._file, line) != len(line)
            if self._is_torn or os.fstat(self._file).st_size > _MAX_BYTES:
                self._rewrite()

    def forget_all_but(self, names: Collection[str]) -> None:
        """Forget files that are gone."""
        self._offsets = {name: offset for name, offset in self._offsets.items() if name in names}

    def close(self) -> None:
        """Release the lock."""
        for each in (self._file, self._lock):
            if each is not None:
                os.close(each)
        self._file = self._lock = None

    def _rewrite(self) -> None:
        draft = self._path.with_suffix(".draft")
        file = os.open(draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write(file, b"".join(_line(name, offset) for name, offset in self._offsets.items()))
            draft.replace(self._path)
        except BaseException:
            os.close(file)
            raise
        if self._file is not None:
            os.close(self._file)
        self._file, self._is_torn = file, False


def _write(file: int, data: bytes) -> None:
    """Write all of `data`. Raises `OSError` where it cannot be, as on a full disk."""
    while data:
        data = data[os.write(file, data) :]


def _line(name: str, offset: int) -> bytes:
    said = f"{offset} {name}".encode()
    return b"%08x %s\n" % (zlib.crc32(said), said)


def _read(path: Path) -> dict[str, int]:
    """Return the positions in a file; a line that is not as it was written counts for nothing."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    found: dict[str, int] = {}
    for line in lines[:-1]:  # what follows the last line break was cut off by a kill
        _, _, said = line.partition(b" ")
        offset, _, name = said.partition(b" ")
        if offset.isdigit() and line == _line(name.decode(errors="replace"), int(offset))[:-1]:
            found[name.decode()] = int(offset)
    return found


# About two hundred records of usual size, and what receivers take in one message.
_BATCH_BYTES: Final = 1 << 17


class RecordBatch(NamedTuple):
    """Records of one file that follow each other."""

    name: str
    """The file, with its stream."""
    ends_at: int
    """How many bytes of the file are shipped when these are."""
    records: tuple[ShippedRecord, ...]


class UnshippedRecords:
    """What is left to ship to one receiver. Its methods may be called from any thread."""

    def __init__(self, log_dir: Path, receiver: str) -> None:
        """Read the records under `log_dir`; `receiver` names where they go."""
        self._log_dir = log_dir
        self._positions = ShippedPositions(log_dir / "mcp_server" / "shipped", receiver)
        self._turn = threading.Lock()
        self._ended: set[str] = set()
        """The files that are shipped to their end, and that no process writes to."""

    def next(self) -> RecordBatch | None:
        """Return the next batch, oldest file first; None if there is none, or a different process ships.

        Raises `OSError` where a file cannot be read.
        """
        with self._turn:
            if not self._positions.hold():
                return None
            files = dict(self._files())
            self._ended &= files.keys()
            self._positions.forget_all_but(files.keys())
            for name, path in files.items():
                if name not in self._ended:
                    with contextlib.suppress(FileNotFoundError):  # pruned at this moment
                        if (batch := self._batch_of(name, path)) is not None:
                            return batch
            return None

    def confirm(self, batch: RecordBatch) -> None:
        """Note that a batch has arrived.

        Raises `OSError` where that cannot be written: then it is sent again after a restart.
        """
        with self._turn:
            self._positions.note(batch.name, batch.ends_at)

    def close(self) -> None:
        """Let the next process ship."""
        with self._turn:
            self._positions.close()

    def _files(self) -> Iterator[tuple[str, Path]]:
        found: list[tuple[str, str, Path]] = []
        for stream in (EXECUTION_STREAM, INTENT_STREAM):
            folder = stream_folder(self._log_dir, stream)
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
                found += (
                    (entry.name, stream, folder / entry.name)
                    for entry in entries
                    if entry.name.endswith(".jsonl") and not entry.is_symlink()
                )
        for file, stream, path in sorted(found):
            yield f"{stream}/{file}", path

    def _batch_of(self, name: str, path: Path) -> RecordBatch | None:
        is_open = is_written_to(path)  # asked before it is read: what is written meanwhile is read later
        with path.open("rb") as file:
            start = self._positions.of(name)
            if start > os.fstat(file.fileno()).st_size:  # it was removed, and begun anew
                start = 0
            file.seek(start)
            block = file.read(_BATCH_BYTES)
            if b"\n" not in block:  # a record that is longer than a batch
                block += file.readline()
        whole = block[: block.rfind(b"\n") + 1]
        if not whole:
            if start and not is_open:  # an empty one may be a moment old, and not locked yet
                self._ended.add(name)
            return None
        stream, _, named = name.partition("/")
        records = tuple(_records(stream, named, whole))
        if not records:  # what is no record is not shipped; `portbook audit verify` tells of it
            self._positions.note(name, start + len(whole))
            return self._batch_of(name, path)
        return RecordBatch(name, start + len(whole), records)


def _records(stream: str, file: str, lines: bytes) -> Iterator[ShippedRecord]:
    for line in lines.split(b"\n")[:-1]:
        fields = record_of(line)
        if fields is not None:
            seq, digest = fields.get("seq"), fields.get("hash")
            if isinstance(seq, int) and isinstance(digest, str):
                yield ShippedRecord(stream, file, seq, digest, line, fields)
