"""The way of one `tools/call` over STDIO does not grow unnoticed: its steps are counted and compared."""

from __future__ import annotations

from typing import Final

import pytest

from bench.way import Way, measure_way

# What `python -m bench.way` printed when this was last shortened. A change that needs more than a tenth more
# is either worth it, and changes the figure with its reason, or is on the wrong side of the boundary.
_CALLS: Final = {1: 47, 32: 22}
_FILES: Final = 15
# The message, which shows that parsing lost nothing of it; the result. The answer is joined from the result.
_ENCODINGS: Final = 2
_LOOP_HANDLES: Final = 2
_GROWTH: Final = 1.1


@pytest.fixture(scope="module", params=[1, 32])
def measured(request: pytest.FixtureRequest) -> tuple[int, Way]:
    return request.param, measure_way(per_read=request.param)


def test_a_call_takes_no_more_steps_than_it_did(measured: tuple[int, Way]) -> None:
    per_read, way = measured
    assert way.calls <= _CALLS[per_read] * _GROWTH, way.functions
    assert way.files <= _FILES, sorted({name.partition(":")[0] for name, _ in way.functions})


def test_a_call_takes_no_more_of_the_loop_and_the_writers_than_it_did(measured: tuple[int, Way]) -> None:
    _, way = measured
    assert way.encodings <= _ENCODINGS
    assert way.loop_handles <= _LOOP_HANDLES
