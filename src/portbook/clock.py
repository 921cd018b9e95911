"""Clocks; the only module that reads the system's clock.

A `Clock` is passed as an argument, so that with a fixed one the same input gives the same bytes.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Protocol

__all__ = ["Clock", "SystemClock", "later", "until"]


class Clock(Protocol):
    """Wall time for people, ticks for durations."""

    def now(self) -> str:
        """Return the wall time as ISO 8601 in UTC, with milliseconds."""
        ...

    def tick(self) -> float:
        """Return the seconds of a monotonic clock."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ("_second",)

    def __init__(self) -> None:
        self._second = -1000, ""
        """The second that the last timestamp was in: its first millisecond, and how it is written. One value,
        because several threads ask for the time."""

    def now(self) -> str:
        """Return the wall time as ISO 8601 in UTC, with milliseconds."""
        millisecond = time.time_ns() // 1_000_000
        begin, prefix = self._second
        within = millisecond - begin
        if not 0 <= within < 1000:  # formatting the date is the expensive part of a timestamp
            within = millisecond % 1000
            prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(millisecond // 1000))
            self._second = millisecond - within, prefix
        return f"{prefix}{within:03}Z"

    tick = staticmethod(time.perf_counter)
    """Returns the seconds of a monotonic clock."""


def later(now: str, seconds: float) -> str:
    """Return the time `seconds` after `now`, in the form of `now`."""
    then = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return then.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def until(now: str, then: str) -> float:
    """Return the seconds from `now` until `then`."""
    return (datetime.fromisoformat(then) - datetime.fromisoformat(now)).total_seconds()
