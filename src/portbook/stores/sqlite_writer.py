"""`StoreWriter`: the only writer of a SQLite store; jobs that wait together share a transaction.

Each job runs in its own savepoint: a job that fails undoes only its own changes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from portbook.stores.connection_clock_and_errors import (
    Connection,
    FileConnection,
    StoreError,
    UnknownOutcome,
    as_store_error,
    problem_of,
)

__all__ = ["JobEnding", "StoreWriter", "WriteJob", "WriteQueue"]

# `WriteQueue`: a thread that takes waiting jobs together, so that they share a transaction.
#
# Flushing a transaction to disk costs the same for one job as for a hundred. So jobs that arrive during a
# transaction share the next one. Success is reported only after the transaction is on disk.

# Keeps transactions short for other processes: this many small jobs take a few milliseconds.
_MAX_BATCH: Final = 256

# The result of a job, or its exception.
JobEnding = tuple[Any, Exception | None]


class WriteJob(NamedTuple):
    """What is to be written, and who waits for it."""

    work: Callable[[Connection], Any]
    future: Future[Any]
    lock: str | None = None


class WriteQueue:
    """Hands jobs to a function that commits them, in the order of arrival."""

    def __init__(
        self,
        commit: Callable[[Sequence[WriteJob]], Sequence[JobEnding]],
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `commit` with each batch on a thread, and `after` once its results are known to all."""
        self._commit = commit
        self._after = after
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="portbook-store", daemon=True)
        self._thread.start()

    def put(self, job: WriteJob) -> None:
        """Add a job; its future raises `StoreError` where the commit failed."""
        self._jobs.put(job)

    def close(self) -> None:
        """Finish the jobs, then end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        is_open = True
        while is_open:
            taken = [self._jobs.get()]
            while len(taken) < _MAX_BATCH and not self._jobs.empty():
                taken.append(self._jobs.get())
            is_open = None not in taken
            # Drops jobs that were cancelled while they waited; from here on they cannot be cancelled.
            batch = [job for job in taken if job is not None and job.future.set_running_or_notify_cancel()]
            if batch:
                self._write(batch)
            del taken, batch  # a waiting thread must not keep the last jobs' values alive

    def _write(self, batch: list[WriteJob]) -> None:
        try:
            endings = self._commit(batch)
        except Exception as error:  # noqa: BLE001 - passed to the waiting calls; the thread must not end
            endings = [(None, _copied(error)) for _ in batch]
        for job, (result, error) in zip(batch, endings, strict=True):
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)
        self._after()


def _copied(error: Exception) -> Exception:
    # Each waiting call adds its own frames to the exception it gets.
    if isinstance(error, UnknownOutcome):
        return UnknownOutcome(str(error))
    return StoreError(str(error)) if isinstance(error, StoreError) else error


T = TypeVar("T")


class StoreWriter:
    """Runs jobs on a connection in the order of arrival, several in one transaction."""

    def __init__(self, connection: FileConnection, guard: AbstractContextManager[Any], path: Path) -> None:
        """Write through `connection`, which other threads use only while they hold `guard`."""
        self._connection = connection
        self._guard = guard
        self._path = path
        self._commits = 0
        self._queue = WriteQueue(self._commit)

    @property
    def commits(self) -> int:
        """Return how many transactions have been committed."""
        return self._commits

    def submit(self, work: Callable[[Connection], T]) -> Future[T]:
        """Run `work` on the writer's thread; the future has its result once it is committed.

        Raises nothing itself; the future raises `StoreError` where the commit failed.
        """
        future: Future[T] = Future()
        self._queue.put(WriteJob(work, future))
        return future

    def close(self) -> None:
        """Finish submitted jobs, then end the thread."""
        self._queue.close()

    def _commit(self, batch: Sequence[WriteJob]) -> list[JobEnding]:
        connection = self._connection
        with self._guard, as_store_error(self._path):
            try:
                connection.execute("BEGIN IMMEDIATE")
                endings = [self._attempt(job) for job in batch]
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._commits += 1
            return endings

    def _attempt(self, job: WriteJob) -> JobEnding:
        """Run one job; return its result or its error.

        Raises that error where the database rolled back the whole transaction, with the other jobs.
        """
        connection = self._connection
        connection.execute("SAVEPOINT job")
        try:
            result = job.work(connection)
        except Exception as error:  # passed to the call that waits for this job
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO job; RELEASE job")
            return None, problem_of(self._path, error)
        connection.execute("RELEASE job")
        return result, None
