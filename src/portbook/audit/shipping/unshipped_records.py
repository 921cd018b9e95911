"""`UnshippedRecords`: reads the records that were not shipped yet, from the files that journals write.

It reads what is on disk, so that no call waits for it, and what a process left behind when it was killed is
shipped by the next one. It never holds more than one batch in memory.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from portbook.audit.journal import EXECUTION_STREAM, INTENT_STREAM
from portbook.audit.log_reader import is_written_to, record_of, stream_folder
from portbook.audit.shipping.shipment import ShippedRecord
from portbook.audit.shipping.shipped_positions import ShippedPositions
from portbook.text.named_tuple import NamedTuple

__all__ = ["RecordBatch", "UnshippedRecords"]

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
