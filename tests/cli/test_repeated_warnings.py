"""Of a warning that every worker gives, one is told."""

from __future__ import annotations

from portbook.cli.worker_supervisor import RepeatedWarnings


def test_a_warning_that_a_different_worker_has_just_given_is_not_new() -> None:
    now = 0.0
    warnings = RepeatedWarnings(lambda: now)
    assert warnings.is_new("the disk is full", 1)
    assert not warnings.is_new("the disk is full", 2)
    assert warnings.is_new("the disk is slow", 2)


def test_what_one_worker_says_again_is_told_again() -> None:
    warnings = RepeatedWarnings(lambda: 0.0)
    assert warnings.is_new("a", 1)
    assert warnings.is_new("a", 1)
    assert not warnings.is_new("a", 2)


def test_after_a_minute_it_is_news() -> None:
    times = iter([0.0, 59.0, 61.0, 62.0])
    warnings = RepeatedWarnings(lambda: next(times))
    assert [warnings.is_new("a", worker) for worker in (1, 2, 2, 1)] == [True, False, True, False]


def test_the_oldest_of_many_texts_is_forgotten() -> None:
    warnings = RepeatedWarnings(lambda: 0.0)
    for number in range(1001):
        assert warnings.is_new(str(number), 1)
    assert warnings.is_new("0", 2)
    assert not warnings.is_new("1000", 2)
