"""The arithmetic of the bench: one run, medians and spread of several, ratios within rounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Figure", "Run", "figure", "ratios"]


class Run(NamedTuple):
    """What one run of one server took. None where a run does not measure it."""

    calls_per_second: float
    cpu_us: float
    """Processor time of one call, user and system together."""
    p50_us: float | None = None
    """The median wait for an answer, one call at a time."""
    start_ms: float | None = None
    """From the start of the process to its first answer."""
    start_cpu_ms: float | None = None
    idle_mib: float | None = None
    """Resident memory after the first call."""
    p99_us: float | None = None
    """The wait for an answer that one call of a hundred exceeds, one call at a time."""
    p50_awake_us: float | None = None
    """The median wait where no processor sleeps meanwhile."""


class Figure(NamedTuple):
    """The median of several runs, and how far they lie apart."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Return the distance from lowest to highest, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


def figure(values: Iterable[float | None]) -> Figure | None:
    """Return the median and the range of what was measured; None where nothing was."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    return Figure(statistics.median(known), min(known), max(known)) if known else None


def ratios(ours: Sequence[Run], theirs: Sequence[Run], field: str) -> Figure | None:
    """Return our figure divided by theirs, round by round: what disturbs a round disturbs both."""
    made: list[float | None] = []
    for our, their in zip(ours, theirs, strict=False):
        above, below = getattr(our, field), getattr(their, field)
        made.append(above / below if above is not None and below else None)
    return figure(made)
