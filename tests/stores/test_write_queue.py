"""Jobs that wait together are committed together, and each learns how it ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from portbook.stores.connection_clock_and_errors import StoreError, UnknownOutcome
from portbook.stores.sqlite_writer import JobEnding, WriteJob, WriteQueue


def job() -> WriteJob:
    return WriteJob(lambda _: None, Future[Any]())


def test_jobs_that_arrive_during_a_commit_share_the_next_one() -> None:
    going, sizes = threading.Event(), list[int]()
    after: list[int] = []

    def commit(batch: Sequence[WriteJob]) -> list[JobEnding]:
        sizes.append(len(batch))
        going.wait(60)
        return [(at, None) for at, _ in enumerate(batch)]

    queue = WriteQueue(commit, lambda: after.append(sizes[-1]))
    first = job()
    queue.put(first)
    while not sizes:
        pass
    jobs = [job() for _ in range(3)]
    for each in jobs:
        queue.put(each)
    jobs[1].future.cancel()
    going.set()
    queue.close()
    assert first.future.result() == 0
    assert [jobs[0].future.result(), jobs[2].future.result()] == [0, 1]
    assert sizes == after == [1, 2]


@pytest.mark.parametrize("error", [StoreError("away"), UnknownOutcome("lost"), KeyError("x")])
def test_a_commit_that_fails_is_told_to_every_job_as_what_it_is(error: Exception) -> None:
    def commit(_: Sequence[WriteJob]) -> list[JobEnding]:
        raise error

    queue, jobs = WriteQueue(commit), [job(), job()]
    for each in jobs:
        queue.put(each)
    queue.close()
    for each in jobs:
        assert type(each.future.exception()) is type(error)
