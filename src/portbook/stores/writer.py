"""`StoreWriter`: the only writer of a store, a thread that commits waiting jobs together.

Flushing a transaction to disk costs the same for one job as for a hundred. So jobs that arrive during a
transaction share the next one. Each runs in its own savepoint: a job that fails undoes only its own changes.
Success is reported only after the transaction is on disk.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from portbook.stores.connection_types import FileConnection
from portbook.stores.errors import StoreError, as_store_error, problem_of

__all__ = ["StoreWriter"]

T = TypeVar("T")

# Keeps transactions short for other processes: this many small jobs take a few milliseconds.
_MAX_BATCH: Final = 256

# The result of a job, or its exception.
_Ending = tuple[Any, Exception | None]


class _WriteJob(NamedTuple):
    work: Callable[[FileConnection], Any]
    future: Future[Any]


class StoreWriter:
    """Runs jobs on a connection in the order of arrival, several in one transaction."""

    def __init__(self, connection: FileConnection, guard: AbstractContextManager[Any], path: Path) -> None:
        """Write through `connection`, which other threads use only while they hold `guard`."""
        self._connection = connection
        self._guard = guard
        self._path = path
        self._jobs: queue.SimpleQueue[_WriteJob | None] = queue.SimpleQueue()
        self._commits = 0
        self._thread = threading.Thread(target=self._work, name="portbook-store", daemon=True)
        self._thread.start()

    @property
    def commits(self) -> int:
        """Return how many transactions have been committed."""
        return self._commits

    def submit(self, work: Callable[[FileConnection], T]) -> Future[T]:
        """Run `work` on the writer's thread; the future has its result once it is committed.

        Raises nothing itself; the future raises `StoreError` where the commit failed.
        """
        future: Future[T] = Future()
        self._jobs.put(_WriteJob(work, future))
        return future

    def close(self) -> None:
        """Finish submitted jobs, then end the thread."""
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

    def _write(self, batch: list[_WriteJob]) -> None:
        try:
            endings = self._commit(batch)
        except Exception as error:  # noqa: BLE001 - passed to the waiting calls; the thread must not end
            endings = [(None, _copied(error)) for _ in batch]
        for job, (result, error) in zip(batch, endings, strict=True):
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)

    def _commit(self, batch: list[_WriteJob]) -> list[_Ending]:
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

    def _attempt(self, job: _WriteJob) -> _Ending:
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


def _copied(error: Exception) -> Exception:
    # Each waiting call adds its own frames to the exception it gets.
    return StoreError(str(error)) if isinstance(error, StoreError) else error
