"""`StoreWriter`: the only writer of a SQLite store; jobs that wait together share a transaction.

Each job runs in its own savepoint: a job that fails undoes only its own changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from portbook.stores.connection_types import Connection, FileConnection
from portbook.stores.errors import as_store_error, problem_of
from portbook.stores.write_queue import JobEnding, WriteJob, WriteQueue

__all__ = ["StoreWriter"]

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
