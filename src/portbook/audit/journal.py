"""The journal: every record in its two views, each a stream of its own, and the intents before them.

What is written when a call returns: the execution view (numbered and chained), the envelope view, and on
standard error the execution view again where an operator asked for it. The intents' file is made with the
first of them: a boundary whose tools only read has none.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Final

from portbook.audit.chain import line_of
from portbook.audit.jsonl import ENVELOPE_STREAM, ChainedSink, JsonlSink
from portbook.model import JSONObject

__all__ = ["EXECUTION_STREAM", "INTENT_STREAM", "Journal"]

EXECUTION_STREAM: Final = "execution"
INTENT_STREAM: Final = "intent"

# So long may pass until it is noticed that the disk is full, or that somebody removed the files.
_LOOK_S: Final = 1.0


class Journal:
    """Keeps what happens, in files under one folder."""

    def __init__(self, log_dir: Path, *, started: str, run: str, keep: int, to_stderr: bool = False) -> None:
        """Open this run's files.

        Raises `OSError` where the folder cannot be written.
        """
        self._envelope = JsonlSink(log_dir, ENVELOPE_STREAM, started=started, run=run, keep=keep)
        self._execution = ChainedSink(log_dir, EXECUTION_STREAM, started=started, run=run, keep=keep)
        self._intents: ChainedSink | None = None
        self._log_dir, self._started, self._run, self._keep = log_dir, started, run, keep
        self._to_stderr = to_stderr
        self._looked = time.monotonic()

    def look(self) -> None:
        """Look after the files, but not for every call: that would cost as much as writing a record.

        Raises `OSError` where a record could not be kept, or not be found again.
        """
        now = time.monotonic()
        if now - self._looked > _LOOK_S:
            self._execution.look()
            self._envelope.look()
            self._looked = now

    def mend(self) -> None:
        """Make ready to write again after a failure.

        Raises `OSError` where there is still no room for a record.
        """
        self._envelope.mend()
        self._execution.mend()
        if self._intents is not None:
            self._intents.mend()

    def intend(self, intent: JSONObject) -> None:
        """Keep the note that a call with effects is about to run.

        Raises `OSError` where it cannot be kept.
        """
        if self._intents is None:
            self._intents = ChainedSink(
                self._log_dir, INTENT_STREAM, started=self._started, run=self._run, keep=self._keep
            )
        self._intents.write(intent)

    def write(self, envelope: JSONObject, execution: JSONObject) -> None:
        """Keep both views of a record.

        Raises `OSError` where they cannot be kept.
        """
        self._execution.write(execution)
        self._envelope.write(envelope)
        if self._to_stderr:
            _copy_to_stderr(execution)

    def close(self) -> None:
        """Close the files. Nothing is held back that would have to be flushed."""
        self._envelope.close()
        self._execution.close()
        if self._intents is not None:
            self._intents.close()


def _copy_to_stderr(execution: JSONObject) -> None:
    """Write a record that is already kept; whatever becomes of this copy, the call goes on."""
    if sys.stderr is None:  # it was closed when the process began
        return
    with contextlib.suppress(OSError, ValueError):  # nobody reads it any more, or it was closed since
        sys.stderr.write(f"{line_of(execution).decode()}\n")
