"""What workers take can be measured: every call is answered, and every worker has connections."""

from __future__ import annotations

from bench.workers import measured


def test_the_calls_of_two_workers_are_counted_in_all_processes() -> None:
    found = measured(2, 200)
    assert (found.workers, sum(found.connections), len(found.connections)) == (2, 32, 2)
    assert min(found.connections) > 0
    assert 0 < found.busiest_us < found.cpu_us
