"""How many calls a caller may make, on a clock of the test's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from portbook.access.rate_limit import Rates


def test_without_a_limit_nothing_is_counted() -> None:
    rates = Rates(None)
    assert {rates.take("ada", 0.0) for _ in range(10_000)} == {None}


def test_a_minutes_worth_may_come_at_once_and_the_next_has_to_wait() -> None:
    rates = Rates(60)
    assert [rates.take("ada", 0.0) for _ in range(60)] == [None] * 60
    assert rates.take("ada", 0.0) == 1
    assert rates.take("ada", 0.5) == 1
    assert rates.take("ada", 1.0) is None
    assert rates.take("ada", 1.0) == 1


def test_the_time_to_wait_is_told_in_whole_seconds() -> None:
    rates = Rates(2)
    assert [rates.take("ada", 0.0), rates.take("ada", 0.0)] == [None, None]
    assert rates.take("ada", 0.0) == 30
    assert rates.take("ada", 29.0) == 1
    assert rates.take("ada", 30.0) is None


def test_callers_do_not_use_up_each_others_calls() -> None:
    rates = Rates(1)
    assert rates.take("ada", 0.0) is None
    assert rates.take("bob", 0.0) is None
    assert rates.take("ada", 0.0) == 60


@given(st.integers(1, 100), st.lists(st.floats(0, 10), max_size=200))
def test_in_any_minute_at_most_twice_the_allowance_passes(per_minute: int, steps: list[float]) -> None:
    """A full bucket at its start, and what flows in during it."""
    rates, tick, passed = Rates(per_minute), 0.0, []
    for step in steps:
        tick += step
        if rates.take("ada", tick) is None:
            passed.append(tick)
    for start in passed:
        assert sum(start <= each < start + 60 for each in passed) <= 2 * per_minute
