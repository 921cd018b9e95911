"""The recorded calls of a log folder: an index, filters of them, and figures over time.

- `CallIndex`: for questions that files cannot answer quickly. Files only grow, so each question reads what
  was added since the last one. The two views of a call are joined by its request id: who called and what
  policy decided is in one, the door in the other.
- `call_filter`: which recorded calls somebody asks for.
- `call_figures`: calls, refusals, failures and latencies over time.
"""

from __future__ import annotations

import bisect
import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final

from portbook.audit.journal import ENVELOPE_STREAM, EXECUTION_STREAM
from portbook.audit.log_reader_and_follower import files_in, record_of, stream_folder
from portbook.globs import matches, problem_of
from portbook.model import JSON, JSONObject
from portbook.tools.tool_names import TOOL_PREFIX

__all__ = [
    "FILTERS",
    "BadFilter",
    "CallIndex",
    "CallRow",
    "call_figures",
    "call_filter",
    "moment_of",
    "position_of",
]

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


# Filters.

STATUSES: Final = ("success", "refused", "failed")
# From here on, a status says that the tool or its way failed; below, that the call was refused.
_FAILED: Final = 500
# No log has as many lines, and Python refuses to read a number of thousands of digits.
_LINE_DIGITS: Final = 16


class BadFilter(Exception):
    """A filter that cannot be used: its name and what it must be."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name
        self.problem = problem


def call_filter(asked: Mapping[str, str]) -> Callable[[CallRow], bool]:
    """Return what a call must be for all of `asked` to hold.

    Raises `BadFilter` for a value that cannot be used.
    """
    unknown = next((name for name in asked if name not in _TESTS), None)
    if unknown is not None:
        raise BadFilter(unknown, f"is no filter; use {', '.join(FILTERS)}")
    tests = [_TESTS[name](value) for name, value in asked.items()]
    return lambda row: all(test(row) for test in tests)


def moment_of(name: str, text: str) -> str:
    """Return a time in the form that records have, which sorts as times do.

    Raises `BadFilter` for what is no time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadFilter(name, "must be a time such as 2026-01-31 or 2026-01-31T09:30:00Z") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def position_of(name: str, text: str) -> tuple[str, str, int]:
    """Return the position that a row's `cursor` or a time stands for; a time is before every call of it.

    Raises `BadFilter` for what is neither.
    """
    match text.split(","):
        case [at, file, line] if line.isdecimal() and len(line) < _LINE_DIGITS:
            return at, file, int(line)
        case _:
            return moment_of(name, text), "", 0


def status_of(row: CallRow) -> str:
    """Return how a call ended: with success, refused, or failed."""
    if row.reason is None:
        return "success"
    return "failed" if row.code >= _FAILED else "refused"


def _of_tool(pattern: str) -> Callable[[CallRow], bool]:
    wanted = pattern.removeprefix(TOOL_PREFIX)
    if problem := problem_of(wanted):
        raise BadFilter("tool", f"must be a name or a pattern: {problem}")
    known: dict[str | None, bool] = {None: False}  # many calls, few tools

    def is_wanted(row: CallRow) -> bool:
        found = known.get(row.tool)
        if found is None:
            assert row.tool is not None
            found = known[row.tool] = matches((wanted,), row.tool.removeprefix(TOOL_PREFIX))
        return found

    return is_wanted


def _by_rule(name: str) -> Callable[[CallRow], bool]:
    # A record names the rule with its place, which moves when lines above it are edited.
    placed = f"{name} ("
    return lambda row: row.rule is not None and (row.rule == name or row.rule.startswith(placed))


def _with_status(value: str) -> Callable[[CallRow], bool]:
    if value.isdecimal():
        return lambda row: str(row.code) == value
    if value == "failure":
        return lambda row: row.reason is not None
    if value not in STATUSES:
        raise BadFilter("status", f"must be one of {', '.join(STATUSES)}, failure, or a number such as 403")
    return lambda row: status_of(row) == value


def _since(value: str) -> Callable[[CallRow], bool]:
    since = moment_of("since", value)
    return lambda row: row.at >= since


def _until(value: str) -> Callable[[CallRow], bool]:
    until = moment_of("until", value)
    return lambda row: row.at < until


_TESTS: Final[Mapping[str, Callable[[str], Callable[[CallRow], bool]]]] = {
    "tool": _of_tool,
    "caller": lambda value: lambda row: row.caller == value,
    "door": lambda value: lambda row: row.door is not None and row.door.startswith(value),
    "decision": lambda value: lambda row: row.decision == value,
    "rule": _by_rule,
    "status": _with_status,
    "reason": lambda value: lambda row: row.reason == value,
    "approval": lambda value: lambda row: row.approval == value,
    "since": _since,
    "until": _until,
}
FILTERS: Final = tuple(_TESTS)


# Figures.

_PERCENTILES: Final = (50, 95, 99)
# The tools, callers and reasons that are named; the others are counted together.
_NAMED: Final = 10


def call_figures(rows: Iterable[CallRow], since: str, until: str, buckets: int) -> JSONObject:
    """Return the figures of calls between two times, in buckets of equal length."""
    start, end = datetime.fromisoformat(since), datetime.fromisoformat(until)
    step = max((end - start) / buckets, timedelta(milliseconds=1))
    sorted_in: list[list[CallRow]] = [[] for _ in range(buckets)]
    for row in rows:
        at = int((datetime.fromisoformat(row.at) - start) / step)
        if 0 <= at < buckets:
            sorted_in[at].append(row)
    inside = [row for bucket in sorted_in for row in bucket]
    return {
        "since": since,
        "until": until,
        "step_s": step.total_seconds(),
        "buckets": [_figures(_moment_text(start + at * step), bucket) for at, bucket in enumerate(sorted_in)],
        "total": _figures(since, inside),
        "tools": _counted(row.tool for row in inside),
        "callers": _counted(row.caller for row in inside),
        "reasons": _counted(row.reason for row in inside if row.reason is not None),
    }


def _figures(start: str, rows: Sequence[CallRow]) -> JSONObject:
    statuses = Counter(map(status_of, rows))
    latencies = sorted(row.latency_ms for row in rows)
    return {
        "start": start,
        "calls": len(rows),
        "refused": statuses["refused"],
        "failed": statuses["failed"],
        **{f"p{each}_ms": _percentile(latencies, each) for each in _PERCENTILES},
    }


def _percentile(ordered: Sequence[float], percent: int) -> float | None:
    """Return the smallest latency that `percent` of the calls did not exceed."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


def _counted(names: Iterable[str | None]) -> JSON:
    return [{"name": name, "calls": count} for name, count in Counter(names).most_common(_NAMED)]


def _moment_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
