"""`call_figures`: calls, refusals, failures and latencies over time. Pure: no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from portbook.audit.call_filter import status_of
from portbook.audit.call_index import CallRow
from portbook.model import JSON, JSONObject

__all__ = ["call_figures"]

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
        "buckets": [_figures(_text(start + at * step), bucket) for at, bucket in enumerate(sorted_in)],
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


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
