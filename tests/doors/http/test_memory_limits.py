"""The messages that are being answered take a bounded amount of memory."""

from __future__ import annotations

from portbook.doors.http.memory_limits import MessageMemoryLimit

TEXT = b'"' + b"x" * 99_998 + b'"'
PARTS = b"{}," * 33_333


def test_what_does_not_fit_beside_the_others_is_refused_until_they_are_answered() -> None:
    workload = MessageMemoryLimit(250_000)
    first, second = workload.take(TEXT), workload.take(TEXT)
    assert first is not None
    assert second is not None
    assert workload.take(TEXT) is None
    first.release()
    assert workload.take(TEXT) is not None


def test_a_message_counts_until_the_last_who_holds_it_lets_go() -> None:
    workload = MessageMemoryLimit(150_000)
    memory = workload.take(TEXT)
    assert memory is not None
    memory.hold()
    memory.release()
    assert workload.take(TEXT) is None
    memory.release()
    assert workload.take(TEXT) is not None


def test_a_message_of_many_parts_counts_as_much_as_it_takes() -> None:
    workload = MessageMemoryLimit(21 * len(PARTS))
    assert workload.take(b"[]") is not None
    assert workload.take(PARTS) is None


def test_one_alone_may_be_larger() -> None:
    workload = MessageMemoryLimit(10)
    assert workload.take(TEXT) is not None
    assert workload.take(TEXT) is None
