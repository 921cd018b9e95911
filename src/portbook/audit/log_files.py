"""The files of a stream of records: where they lie, and what stands in them.

A stream is a folder of JSON Lines files, one a run, whose names sort by time. A line without an end is no
record: it is just being written, or its process was killed in the middle of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, cast

import orjson

from portbook.model import JSONObject

__all__ = [
    "Follower",
    "Located",
    "files_in",
    "is_written_to",
    "lines_from_end",
    "lines_of",
    "record_of",
    "records_in",
    "stream_folder",
    "without_outcome",
]

# Read from the end of a file at first, and at most at once: who wants the last line alone has it quickly.
_BLOCK: Final = 4_096
_MAX_BLOCK: Final = 1 << 20


class Located(NamedTuple):
    """A record, and where it stands."""

    file: str
    line: int
    record: JSONObject


def stream_folder(log_dir: Path, stream: str) -> Path:
    """Return the folder of one stream's files."""
    return log_dir / "mcp_server" / stream


def files_in(folder: Path) -> list[Path]:
    """Return a stream's files, the oldest first; a link to one of them is not a file of its own."""
    return sorted(path for path in folder.glob("*.jsonl") if not path.is_symlink())


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their ends; the last may have none.

    Raises `OSError` where it cannot be read.
    """
    with path.open("rb") as file:
        for line in file:
            # Blanks without an end are what trying for room on a full disk leaves, not half a record.
            if line.endswith(b"\n") or line.strip():
                yield line


def lines_from_end(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file with their ends, the last one first.

    Raises `OSError` where it cannot be read.
    """
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END)
        rest = b""
        block = _BLOCK
        while at > 0:
            start = max(0, at - block)
            file.seek(start)
            first, *lines = (file.read(at - start) + rest).split(b"\n")
            for line in reversed([first, *lines][:-1] if start == 0 else lines[:-1]):
                yield line + b"\n"
            at, rest = start, first + b"\n" if lines else first
            block = min(block * 2, _MAX_BLOCK)


def record_of(line: bytes) -> JSONObject | None:
    """Return the record that a line holds; None if it holds none."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return cast("JSONObject", record) if isinstance(record, dict) else None


def records_in(folder: Path, on_bad: Callable[[str, int], None]) -> Iterator[Located]:
    """Yield a stream's records, file by file; `on_bad` is told of each line that is none.

    Raises `OSError` where a file cannot be read.
    """
    for path in files_in(folder):
        yield from _records_of(path, on_bad)


def _records_of(path: Path, on_bad: Callable[[str, int], None]) -> Iterator[Located]:
    for number, line in enumerate(lines_of(path), 1):
        record = record_of(line)
        if not line.endswith(b"\n"):
            return
        if record is None:
            on_bad(path.name, number)
        else:
            yield Located(path.name, number, record)


def without_outcome(intents: Path, executions: Path) -> Iterator[Located]:
    """Yield the intents that have no record: of calls that ended with their process, or that still run.

    The files of one run have the same name in both. An intent has its record's `request_id`; where ids are
    made of the content, several have the same, and are counted.

    Raises `OSError` where a file cannot be read.
    """
    for path in files_in(intents):
        outcomes: Counter[object] = Counter()
        if (executions / path.name).exists():
            found = _records_of(executions / path.name, _ignore)
            outcomes.update(str(located.record.get("request_id")) for located in found)
        for located in _records_of(path, _ignore):
            name = str(located.record.get("request_id"))
            outcomes[name] -= 1
            if outcomes[name] < 0:
                yield located


def _ignore(file: str, line: int) -> None:
    """Leave it to who verifies the chain to speak of lines that are no records."""


def is_written_to(path: Path) -> bool:
    """Return whether a running process holds this file open for its records.

    Raises `OSError` where it cannot be opened.
    """
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class Follower:
    """What is added to a stream, by whichever process, from a moment on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._positions: dict[str, int] = {}
        for path in files_in(folder):
            with contextlib.suppress(FileNotFoundError):  # pruned at this moment
                self._positions[path.name] = path.stat().st_size

    def read(self) -> list[JSONObject]:
        """Return the records that were added since the last time.

        Raises `OSError` where a file cannot be read.
        """
        found: list[JSONObject] = []
        for path in files_in(self._folder):
            with contextlib.suppress(FileNotFoundError):
                found += self._added_to(path)
        return found

    def _added_to(self, path: Path) -> list[JSONObject]:
        start = self._positions.get(path.name, 0)
        with path.open("rb") as file:
            file.seek(start)
            whole, end, _ = file.read().rpartition(b"\n")
        self._positions[path.name] = start + len(whole) + len(end)
        return [record for line in whole.split(b"\n") if (record := record_of(line))]
