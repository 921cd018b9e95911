"""A bucket that several processes draw from, on a clock of the test's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.stores.shared_rates import block_size, draw

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


def test_a_minutes_worth_may_be_drawn_at_once_and_the_next_token_has_to_wait() -> None:
    full_at = 0
    for _ in range(60):
        drawn = draw(full_at, NOW, 60, 1)
        assert drawn.tokens == 1
        full_at = drawn.full_at
    assert draw(full_at, NOW, 60, 1)[::2] == (0, 1.0)
    assert draw(full_at, NOW + SECOND // 2, 60, 1)[::2] == (0, 0.5)
    assert draw(full_at, NOW + SECOND, 60, 1)[::2] == (1, 0.0)


def test_a_block_is_what_is_left_of_it() -> None:
    first = draw(0, NOW, 10, 8)
    assert first.tokens == 8
    second = draw(first.full_at, NOW, 10, 8)
    assert second.tokens == 2
    assert draw(second.full_at, NOW, 10, 8)[::2] == (0, 6.0)


def test_a_clock_that_was_set_back_leaves_an_empty_bucket_that_fills_again() -> None:
    full_at = draw(0, NOW, 60, 60).full_at
    earlier = NOW - 3600 * SECOND
    empty = draw(full_at, earlier, 60, 1)
    assert empty[::2] == (0, 1.0)
    assert draw(empty.full_at, earlier + 2 * SECOND, 60, 60).tokens == 2


@pytest.mark.parametrize(("per_minute", "block"), [(1, 1), (39, 1), (40, 2), (600, 30), (60_000, 3_000)])
def test_a_block_is_a_twentieth_of_the_limit(per_minute: int, block: int) -> None:
    assert block_size(per_minute) == block


@given(
    st.integers(1, 100_000), st.lists(st.tuples(st.integers(0, 10 * SECOND), st.integers(1, 50)), max_size=60)
)
def test_no_more_is_drawn_than_a_full_bucket_and_what_flows_in(
    per_minute: int, steps: list[tuple[int, int]]
) -> None:
    full_at, now, drawn = 0, NOW, 0
    for pause, wanted in steps:
        now += pause
        got = draw(full_at, now, per_minute, wanted)
        full_at, drawn = got.full_at, drawn + got.tokens
        assert bool(got.tokens) is not bool(got.wait_s)
        if got.wait_s:  # then there is one, and not before
            then = now + round(got.wait_s * SECOND)
            assert draw(full_at, then, per_minute, 1).tokens == 1
            assert draw(full_at, then - 2, per_minute, 1).tokens == 0
        # Each draw may round by a microsecond.
        allowed = per_minute + (now - NOW + len(steps)) * per_minute / (60 * SECOND)
        assert drawn <= allowed
