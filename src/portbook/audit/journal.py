"""`Journal`: writes every record in its two views, each in its own stream, and the intents before them.

A call writes the execution view (numbered and chained), the envelope view, and a copy of the execution view
to standard error where the operator asked for it. The file of intents is created with the first intent: a
boundary whose tools only read has none.
"""

from __future__ import annotations

import contextlib
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

from portbook.audit.log_writer import ENVELOPE_STREAM, ChainedSink, JsonlSink

__all__ = ["EXECUTION_STREAM", "INTENT_STREAM", "Journal"]

EXECUTION_STREAM: Final = "execution"
INTENT_STREAM: Final = "intent"

# The longest time until a full disk, removed files or the link of a killed server are noticed.
_LOOK_S: Final = 1.0


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
        self._envelope = JsonlSink(
            log_dir, ENVELOPE_STREAM, started=started, run=run, keep=keep, is_server=is_server
        )
        self._execution = self._open_chained(EXECUTION_STREAM)
        self._intents: ChainedSink | None = None
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
        self._intents.write(intent)

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Write both views of a record.

        Raises `OSError` where they cannot be written.
        """
        self._execution.write(execution)
        self._envelope.write(envelope)
        if self._to_stderr:
            _copy_to_stderr(execution)

    def close(self) -> None:
        """Close the files. Nothing is buffered, so nothing is flushed."""
        for sink in self._sinks():
            sink.close()

    def _sinks(self) -> list[JsonlSink]:
        opened: list[JsonlSink] = [self._envelope, self._execution]
        return opened if self._intents is None else [*opened, self._intents]


def _copy_to_stderr(execution: bytes) -> None:
    """Copy a record that is already written; a failure here does not affect the call."""
    if sys.stderr is None:  # it was closed when the process started
        return
    with contextlib.suppress(OSError, ValueError):  # its reader has ended, or it was closed
        sys.stderr.write(f"{execution.decode()}\n")
