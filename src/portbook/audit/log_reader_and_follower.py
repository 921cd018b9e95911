"""Reads the files of a stream of records.

A stream is a folder of JSON Lines files, one per run, whose names sort by time. A line without a line break
is not a record: it is being written, or its process was killed while writing it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, cast

import orjson

from portbook.model import JSONObject
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "Follower",
    "Located",
    "files_in",
    "first_and_last_line",
    "is_served_to",
    "is_written_to",
    "lines_from_end",
    "lines_of",
    "names_in",
    "record_of",
    "records_in",
    "stream_folder",
    "without_outcome",
]

# The first block read from the end of a file, and the largest: reading only the last line is quick.
_BLOCK: Final = 4_096
_MAX_BLOCK: Final = 1 << 20


class Located(NamedTuple):
    """A record with its file and line."""

    file: str
    line: int
    record: JSONObject


def stream_folder(log_dir: Path, stream: str) -> Path:
    """Return the folder of one stream's files."""
    return log_dir / "mcp_server" / stream


def files_in(folder: Path) -> list[Path]:
    """Return a stream's files, oldest first, without symbolic links."""
    return [folder / name for name in names_in(folder)]


def names_in(folder: Path) -> list[str]:
    """Return the names of those files: a start finds a thousand, and paths take longer than to list them.

    Raises `OSError` where the system fails: a chain that began anew then would look as if it were whole.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(
                each.name for each in entries if each.name.endswith(".jsonl") and not each.is_symlink()
            )
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []  # nothing was recorded there, or not for this user


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their line breaks; the last may have none.

    Raises `OSError` where it cannot be read.
    """
    with path.open("rb") as file:
        for line in file:
            # Blanks without a line break come from testing for space on a full disk, not from a record.
            if line.endswith(b"\n") or line.strip():
                yield line


def lines_from_end(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file with their line breaks, last line first.

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


def first_and_last_line(path: Path) -> tuple[bytes, bytes]:
    """Return the first line of a file, and its last complete one; empty where it has none.

    With one read, or two for a larger file: a start looks at a thousand files.

    Raises `OSError` where it cannot be read.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        begin = os.pread(file, _BLOCK, 0)
        end = begin if size <= _BLOCK else os.pread(file, _BLOCK, size - _BLOCK)
    finally:
        os.close(file)
    if not begin:
        return b"", b""
    first, stop = begin[: begin.find(b"\n") + 1], end.rfind(b"\n") + 1
    start = end.rfind(b"\n", 0, max(0, stop - 1)) + 1
    last = end[start:stop] if start or size <= _BLOCK else b""
    # One of them may be longer than a block.
    return first or next(lines_of(path), b""), last or next(lines_from_end(path), b"")


def record_of(line: bytes) -> JSONObject | None:
    """Parse the record in a line; return None if it has none."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return cast("JSONObject", record) if isinstance(record, dict) else None


def records_in(folder: Path, on_bad: Callable[[str, int], None]) -> Iterator[Located]:
    """Yield a stream's records, file by file; call `on_bad` for each line that is not a record.

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
    """Yield the intents without a record: the call still runs, or its process ended before it did.

    The files of one run have the same name in both folders. An intent has the `request_id` of its record.
    Where ids are derived from content, several intents have the same id, and are counted.

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
    """Ignore lines that are not records: `verify` reports them."""


def is_written_to(path: Path) -> bool:
    """Return whether a running process writes its records to this file: it holds a lock on it.

    Raises `OSError` where it cannot be opened.
    """
    return _is_locked(path, fcntl.LOCK_EX)


def is_served_to(path: Path) -> bool:
    """Return whether a running server writes its records to this file: its lock is exclusive.

    Raises `OSError` where it cannot be opened.
    """
    return _is_locked(path, fcntl.LOCK_SH)


def _is_locked(path: Path, kind: int) -> bool:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


class Follower:
    """Reads the records that any process adds to a stream from now on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._positions: dict[str, int] = {}
        for path in files_in(folder):
            with contextlib.suppress(FileNotFoundError):  # pruned at this moment
                self._positions[path.name] = path.stat().st_size

    def read(self) -> list[JSONObject]:
        """Return the records added since the last call.

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
