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

    __slots__ = ("_millisecond", "_prefix", "_second", "_text")

    def __init__(self) -> None:
        self._second = self._millisecond = -1
        self._prefix = self._text = ""

    def now(self) -> str:
        """Return the wall time as ISO 8601 in UTC, with milliseconds."""
        millisecond = time.time_ns() // 1_000_000
        if millisecond != self._millisecond:
            second = millisecond // 1000
            if second != self._second:  # formatting the date is the expensive part of a timestamp
                self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
                self._second = second
            self._text = self._prefix + str(1000 + millisecond % 1000)[1:] + "Z"  # a quarter of formatting
            self._millisecond = millisecond
        return self._text

    tick = staticmethod(time.perf_counter)
    """Returns the seconds of a monotonic clock."""


def later(now: str, seconds: float) -> str:
    """Return the time `seconds` after `now`, in the form of `now`."""
    then = datetime.fromisoformat(now) + timedelta(seconds=seconds)
    return then.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def until(now: str, then: str) -> float:
    """Return the seconds from `now` until `then`."""
    return (datetime.fromisoformat(then) - datetime.fromisoformat(now)).total_seconds()
