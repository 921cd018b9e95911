"""Time that a test moves, and names that count."""

from __future__ import annotations

import re

import pytest

from portbook.model import Identity
from portbook.testing import FixedClock
from portbook.testing.fixed_time import CountingBytes, CountingIds
from portbook.wire.trace_context import trace_of, traceparent_of


def test_a_clock_moves_when_it_is_told_to() -> None:
    clock = FixedClock()
    assert (clock.now(), clock.tick()) == ("2026-01-01T00:00:00.000Z", 0.0)
    clock.advance(90.25)
    assert (clock.now(), clock.tick()) == ("2026-01-01T00:01:30.250Z", 90.25)
    with pytest.raises(ValueError, match="a clock cannot go back"):
        clock.advance(-1)
    for endless in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(ValueError, match="a clock cannot go on by"):
            clock.advance(endless)
    assert clock.tick() == 90.25


def test_ids_count_and_have_the_form_of_real_ones() -> None:
    ids = CountingIds()
    first, second = ids.name(b"same"), ids.name(b"same")
    assert first != second
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}", first[0].decode())
    assert trace_of(traceparent_of(Identity.read(first))) == first[1].decode()
    assert CountingIds().name(b"other") == first


def test_bytes_differ_from_drawing_to_drawing_and_not_from_run_to_run() -> None:
    one, two = CountingBytes(), CountingBytes()
    drawn = [one.draw(16), one.draw(16)]
    assert drawn == [two.draw(16), two.draw(16)]
    assert drawn[0] != drawn[1]
    assert [len(data) for data in drawn] == [16, 16]
