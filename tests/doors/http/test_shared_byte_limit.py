"""What all clients together have not read yet is bounded."""

from __future__ import annotations

from portbook.doors.http.memory_limits import SharedByteLimit


class Connection:
    def __init__(self) -> None:
        self.is_open = True

    def abort(self) -> None:
        self.is_open = False


def test_the_connection_that_waits_longest_is_closed_for_the_next() -> None:
    backlog = SharedByteLimit[Connection](100, Connection.abort)
    first, second, third = Connection(), Connection(), Connection()
    backlog.add(first, 60)
    backlog.add(second, 40)
    assert first.is_open
    backlog.add(third, 1)
    assert (first.is_open, second.is_open, third.is_open) == (False, True, True)


def test_what_was_read_counts_no_longer() -> None:
    backlog = SharedByteLimit[Connection](100, Connection.abort)
    first, second = Connection(), Connection()
    backlog.add(first, 60)
    backlog.remove(first)
    backlog.remove(first)
    backlog.add(second, 60)
    backlog.add(second, 90)  # counted once
    assert (first.is_open, second.is_open) == (True, True)


def test_one_answer_may_be_larger_than_all_may_be_together() -> None:
    backlog = SharedByteLimit[Connection](100, Connection.abort)
    alone = Connection()
    backlog.add(alone, 1000)
    assert alone.is_open
