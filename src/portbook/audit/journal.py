"""`Journal`: writes every record in its two views, each in its own stream, and the intents before them.

A call writes the execution view (numbered and chained), the envelope view, and a copy of the execution view
to standard error where the operator asked for it. The file of intents is created with the first intent: a
boundary whose tools only read has none. What decided, which is the same for many calls, is written once.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from portbook.audit.log_writer import ENVELOPE_STREAM, ChainedSink, JsonlSink
from portbook.text.named_tuple import NamedTuple

__all__ = ["BASIS_STREAM", "EXECUTION_STREAM", "INTENT_STREAM", "Journal", "WrittenRecords"]

EXECUTION_STREAM: Final = "execution"
INTENT_STREAM: Final = "intent"
BASIS_STREAM: Final = "basis"

# The longest time until a full disk, removed files or the link of a killed server are noticed.
_LOOK_S: Final = 1.0


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
            self._execution.look()
            self._envelope.look()
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
        for error in self.write_all(((envelope, execution),)).values():
            raise error

    def write_all(self, records: Sequence[tuple[bytes, bytes]]) -> Mapping[int, OSError]:
        """Write both views of each record, a stream at a time; return what failed, by its place."""
        envelopes, executions = zip(*records, strict=True)
        failed = self._execution.write_all(executions)
        if failed:
            kept = [place for place in range(len(records)) if place not in failed]
            lost = self._envelope.write_all([envelopes[place] for place in kept])
            failed |= {kept[at]: error for at, error in lost.items()}
        else:
            failed = self._envelope.write_all(envelopes)
        if self._to_stderr:
            _copy_to_stderr(each for place, each in enumerate(executions) if place not in failed)
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
