"""`CallIndex`: the recorded calls of a log folder, for questions that files cannot answer quickly.

Files only grow, so each question reads what was added since the last one. The two views of a call are joined
by its request id: who called and what policy decided is in one, the door in the other.
"""

from __future__ import annotations

import bisect
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

from portbook.audit.journal import ENVELOPE_STREAM, EXECUTION_STREAM
from portbook.audit.log_reader import files_in, record_of, stream_folder
from portbook.model import JSONObject

__all__ = ["CallIndex", "CallRow"]

# The newest of them: some 400 bytes each.
_MOST: Final = 200_000


@dataclass(slots=True, eq=False)
class CallRow:
    """One recorded call, in short."""

    at: str
    request_id: str
    tool: str | None
    caller: str | None
    decision: str | None
    rule: str | None
    code: int
    reason: str | None
    """Why it has no result; None where it has one."""
    effect: str | None
    latency_ms: float
    approval: str | None
    file: str
    line: int
    seq: int
    door: str | None = None

    @property
    def position(self) -> tuple[str, str, int]:
        """Where it stands among all calls: many end in the same millisecond, no two on the same line."""
        return self.at, self.file, self.line

    @property
    def cursor(self) -> str:
        """Its position as a text; `position_of` of `call_filter` reads it."""
        return f"{self.at},{self.file},{self.line}"

    def as_data(self) -> JSONObject:
        """Return it as JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


class CallIndex:
    """What the records of a folder say, kept up to date. Safe to use from several threads."""

    def __init__(self, log_dir: Path, most: int = _MOST) -> None:
        """Index the newest `most` calls that are recorded in `log_dir`."""
        self._executions = _Tail(stream_folder(log_dir, EXECUTION_STREAM))
        self._envelopes = _Tail(stream_folder(log_dir, ENVELOPE_STREAM))
        self._rows: deque[CallRow] = deque(maxlen=most)
        self._listed: list[CallRow] = []
        self._doors: dict[str, str] = {}
        self._most = most
        self._lock = Lock()

    def rows(self) -> list[CallRow]:
        """Return every call, ordered by time, the newest last. The list is not changed afterwards.

        Raises `OSError` where a file cannot be read.
        """
        with self._lock:
            if self._read_added():
                self._listed = list(self._rows)
            return self._listed

    def newest(
        self, is_wanted: Callable[[CallRow], bool], limit: int, before: tuple[str, str, int] | None
    ) -> list[CallRow]:
        """Return the newest calls that are wanted, at most `limit`, before a position.

        Raises `OSError` where a file cannot be read.
        """
        rows = self.rows()
        end = len(rows) if before is None else bisect.bisect_left(rows, before, key=_position)
        found: list[CallRow] = []
        for at in range(end - 1, -1, -1):
            if is_wanted(rows[at]):
                found.append(rows[at])
                if len(found) == limit:
                    break
        return found

    def _read_added(self) -> bool:
        """Read what is new; return whether anything has changed."""
        added = [_row(*each) for each in self._executions.added()]
        # After the executions: both views of a call are written together, so its door is there by now.
        for _, _, record in self._envelopes.added():
            self._doors[str(record.get("requestId"))] = _door(record)
        for row in added:
            row.door = self._doors.pop(row.request_id, None)
        if len(self._doors) > self._most:  # of calls that have no other record
            self._doors.clear()
        gone = self._executions.gone()
        if gone:
            self._rows = deque((row for row in self._rows if row.file not in gone), maxlen=self._most)
        if added:
            added.sort(key=_position)
            is_in_order = not self._rows or self._rows[-1].position <= added[0].position
            self._rows.extend(added)
            if not is_in_order:  # several processes write at once
                self._rows = deque(sorted(self._rows, key=_position), maxlen=self._most)
        return bool(added or gone)


class _Tail:
    """The lines that are added to the files of a stream."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[int, int]] = {}
        """How many bytes and lines of each file were read."""

    def added(self) -> Iterator[tuple[str, int, JSONObject]]:
        """Yield every record that is new, with its file and line."""
        for path in files_in(self._folder):
            start, number = self._read.get(path.name, (0, 0))
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_size == start:
                    continue
                with path.open("rb") as file:
                    file.seek(start)
                    for line in file:
                        if not line.endswith(b"\n"):
                            break
                        start, number = start + len(line), number + 1
                        record = record_of(line)
                        if record is not None:
                            yield path.name, number, record
                self._read[path.name] = start, number

    def gone(self) -> set[str]:
        """Return the files that were removed, and forget them."""
        missing = self._read.keys() - {path.name for path in files_in(self._folder)}
        for name in missing:
            del self._read[name]
        return missing


def _row(file: str, line: int, record: JSONObject) -> CallRow:
    latency, seq, code = record.get("latency_ms"), record.get("seq"), record.get("status_code")
    return CallRow(
        at=str(record.get("timestamp")),
        request_id=str(record.get("request_id")),
        tool=_text(record.get("tool_id")),
        caller=_text(record.get("caller")),
        decision=_text(record.get("decision")),
        rule=_text(record.get("rule")),
        code=code if isinstance(code, int) else 0,
        reason=_text(record.get("error_class")),
        effect=_text(record.get("effect")),
        latency_ms=float(latency) if isinstance(latency, int | float) else 0.0,
        approval=_text(record.get("approval_id")),
        file=file,
        line=line,
        seq=seq if isinstance(seq, int) else 0,
    )


def _door(record: JSONObject) -> str:
    return f"{record.get('transport')} {record.get('route')}".strip()


def _position(row: CallRow) -> tuple[str, str, int]:
    return row.position


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
