"""The messages that are being answered take a bounded amount of memory."""

from __future__ import annotations

from portbook.doors.http.message_memory_limit import MessageMemoryLimit

TEXT = b'"' + b"x" * 99_998 + b'"'
PARTS = b"{}," * 33_333


def test_what_does_not_fit_beside_the_others_is_refused_until_they_are_answered() -> None:
    workload = MessageMemoryLimit(250_000)
    counted = [workload.take(TEXT) for _ in range(3)]
    assert counted == [100_000, 100_000, None]
    workload.give_back(100_000)
    assert workload.take(TEXT) == 100_000


def test_a_message_of_many_parts_counts_as_much_as_it_takes() -> None:
    counted = MessageMemoryLimit(1).take(PARTS)
    assert counted is not None
    assert counted > 20 * len(PARTS)


def test_one_alone_may_be_larger() -> None:
    workload = MessageMemoryLimit(10)
    assert workload.take(TEXT) == 100_000
    assert workload.take(TEXT) is None
