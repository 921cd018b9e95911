"""Workers see how many connections the others have."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from portbook.doors.http.server.listeners_of_workers import ConnectionTally, create_tally


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = create_tally(3)
    yield made
    os.close(made)


def test_a_worker_is_ahead_while_a_different_one_has_fewer(descriptor: int) -> None:
    first, second = ConnectionTally(descriptor, 0), ConnectionTally(descriptor, 1)
    first.set(1)
    assert not first.is_ahead(), "the others take no connections"
    second.set(0)
    assert first.is_ahead()
    assert not second.is_ahead()
    second.set(1)
    assert not first.is_ahead()


def test_a_worker_that_leaves_or_has_ended_is_not_waited_for(descriptor: int) -> None:
    first, second = ConnectionTally(descriptor, 0), ConnectionTally(descriptor, 1)
    first.set(1)
    second.set(0)
    second.leave()
    assert not first.is_ahead()
    second.set(0)  # its last connections close
    assert not first.is_ahead()
    third = ConnectionTally(descriptor, 2)
    third.set(0)
    assert first.is_ahead()
    ConnectionTally(descriptor).clear(2)
    assert not first.is_ahead()


def test_without_a_place_a_worker_waits_for_nobody(descriptor: int) -> None:
    other, lost = ConnectionTally(descriptor, 0), ConnectionTally(descriptor)
    other.set(0)
    lost.set(5)
    assert not lost.is_ahead()
    assert lost.places == 3
