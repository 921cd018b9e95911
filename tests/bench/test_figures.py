from __future__ import annotations

import math

from bench.figures import Figure, Run, figure, ratios


def test_a_figure_is_the_median_and_the_range() -> None:
    assert figure([3.0, 1.0, 2.0]) == Figure(2.0, 1.0, 3.0)
    assert figure([3.0, 1.0, 2.0]).spread == 1.0  # type: ignore[union-attr]


def test_what_was_not_measured_does_not_count() -> None:
    assert figure([None, 4.0, math.nan]) == Figure(4.0, 4.0, 4.0)
    assert figure([None, math.nan]) is None


def test_a_ratio_is_taken_within_each_round() -> None:
    # The second round was disturbed: both servers were slower, and their ratio is the same.
    ours = [Run(100, 10), Run(50, 20), Run(100, 10)]
    theirs = [Run(10, 100), Run(5, 200), Run(10, 100)]
    assert ratios(ours, theirs, "calls_per_second") == Figure(10.0, 10.0, 10.0)
    assert ratios(ours, theirs, "cpu_us") == Figure(0.1, 0.1, 0.1)


def test_without_the_other_there_is_no_ratio() -> None:
    assert ratios([Run(1, 1)], [], "cpu_us") is None
    assert ratios([Run(1, 1)], [Run(1, 1)], "p50_us") is None
