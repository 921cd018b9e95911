"""What workers take can be measured: every call is answered, and every connection is counted."""

from __future__ import annotations

from bench.workers import measured


def test_the_calls_of_two_workers_are_counted_in_all_processes() -> None:
    found = measured(2, 200)
    assert (found.workers, sum(found.connections), len(found.connections)) == (2, 32, 2)
    # On a busy machine one of them may take all connections: how they are shared is measured, not promised.
    assert 0 < found.busiest_us <= found.cpu_us
