"""Where records go: JSON Lines files, one a run, with a link to the latest.

A record is one `write(2)` to a file opened for appending, made before the answer leaves: a killed process
loses nothing that it acknowledged.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import orjson

from portbook.model import JSONObject

__all__ = ["ENVELOPE_STREAM", "JsonlSink", "LenientSink", "MemorySink", "NoSink"]

ENVELOPE_STREAM: Final = "envelope_validation"

# Room that a record should find after a failure: more than one with its violations usually takes.
_ROOM: Final = 16_384


class JsonlSink:
    """Appends records to `<log_dir>/mcp_server/<stream>/<start time>.<run>.jsonl`."""

    def __init__(self, log_dir: Path, stream: str, *, started: str, run: str, keep: int) -> None:
        """Open this run's file, point the latest link at it and prune what is older than the last `keep`.

        Raises `OSError` where the folder cannot be written.
        """
        folder = log_dir / "mcp_server" / stream
        folder.mkdir(parents=True, exist_ok=True)
        # No colons: not every file system takes them. The names still sort by time.
        self.path = folder / f"{started.replace(':', '-')}.{run}.jsonl"
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_SH)  # tells the pruning of other processes that it is in use
        self._size = 0
        _link_latest(self.path, f"{stream}.latest.jsonl")
        _prune(folder, keep)

    def write(self, record: JSONObject) -> None:
        """Keep `record`. When this returns, a killed process no longer loses it.

        Raises `OSError` where it cannot be kept.
        """
        # Not `json_bytes`: its search for NaN would take longer than the writing, and a record has none.
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self._append(line)
        self._size += len(line)

    def mend(self) -> None:
        """Make ready to write again after a failure.

        Raises `OSError` where there is still no room for a record.
        """
        self._append(b" " * _ROOM)
        os.ftruncate(self._file, self._size)

    def _append(self, data: bytes) -> None:
        written = 0
        try:
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            if written:  # half a line would be a record that nobody can read: take it back
                os.ftruncate(self._file, self._size)
            raise

    def close(self) -> None:
        """Close the file. Nothing is held back that would have to be flushed."""
        os.close(self._file)


class MemorySink:
    """Keeps records in a list: for tests, and for looking at what a call leaves behind."""

    def __init__(self) -> None:
        self.records: list[JSONObject] = []

    def mend(self) -> None:
        """Do nothing: memory does not fill up."""

    def write(self, record: JSONObject) -> None:
        """Keep `record`."""
        self.records.append(record)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class NoSink:
    """Keeps nothing: for who is told not to write files."""

    def mend(self) -> None:
        """Do nothing: nothing can break."""

    def write(self, record: JSONObject) -> None:
        """Forget `record`."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class _Keeper(Protocol):
    def mend(self) -> None: ...
    def write(self, record: JSONObject) -> None: ...
    def close(self) -> None: ...


class LenientSink:
    """Keeps what another sink can keep, warns once where it cannot, and never refuses a call for that."""

    def __init__(self, inner: _Keeper, warn: Callable[[str], None]) -> None:
        self._inner = inner
        self._warn = warn
        self._is_broken = False

    def mend(self) -> None:
        """Do nothing: writing tries again by itself."""

    def write(self, record: JSONObject) -> None:
        """Keep `record`, if it can be kept."""
        try:
            if self._is_broken:
                self._inner.mend()
            self._inner.write(record)
        except OSError as error:
            if not self._is_broken:
                self._warn(f"records cannot be written, calls go on without them: {error.strerror}")
            self._is_broken = True
        else:
            self._is_broken = False

    def close(self) -> None:
        """Close the other sink."""
        self._inner.close()


def _link_latest(path: Path, name: str) -> None:
    # Made beside its place and moved there: whoever follows the link finds one run's file or another's.
    draft = path.with_name(f".{name}.{path.stem}")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    draft.symlink_to(path.name)
    draft.replace(path.with_name(name))


def _prune(folder: Path, keep: int) -> None:
    files = sorted(path for path in folder.glob("*.jsonl") if not path.is_symlink())
    for path in files[: max(len(files) - keep, 0)]:
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a running process writes to it
            path.unlink()
