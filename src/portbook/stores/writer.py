"""The one writer of a store: a thread that makes whatever waits durable together.

A transaction is forced to the disk, which costs the same for one job as for a hundred. So jobs that come in
while one transaction is under way share the next one. Each runs in a savepoint of its own: what fails takes
back only what it did itself. Nobody hears of success before the transaction is on the disk.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from portbook.stores.connections import Connection
from portbook.stores.errors import StoreError, problem_of, told

__all__ = ["StoreWriter"]

T = TypeVar("T")

# A transaction should not keep other processes waiting: this many small jobs take a few milliseconds.
_MAX_BATCH: Final = 256

# What a job returned, or what it raised.
_Ending = tuple[Any, Exception | None]


class _WriteJob(NamedTuple):
    work: Callable[[Connection], Any]
    future: Future[Any]


class StoreWriter:
    """Runs jobs on a connection, in the order in which they came, some of them in one transaction."""

    def __init__(self, connection: Connection, guard: AbstractContextManager[Any], path: Path) -> None:
        """Write through `connection`, which nobody else uses without holding `guard`."""
        self._connection = connection
        self._guard = guard
        self._path = path
        self._jobs: queue.SimpleQueue[_WriteJob | None] = queue.SimpleQueue()
        self._commits = 0
        self._thread = threading.Thread(target=self._work, name="portbook-store", daemon=True)
        self._thread.start()

    @property
    def commits(self) -> int:
        """Return how many transactions have been made durable."""
        return self._commits

    def submit(self, work: Callable[[Connection], T]) -> Future[T]:
        """Run `work` on the writer's thread; what it returns or raises is told once it is durable.

        Raises nothing itself; the future raises `StoreError` where nothing could be written.
        """
        future: Future[T] = Future()
        self._jobs.put(_WriteJob(work, future))
        return future

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        is_open = True
        while is_open:
            taken = [self._jobs.get()]
            while len(taken) < _MAX_BATCH and not self._jobs.empty():
                taken.append(self._jobs.get())
            is_open = None not in taken
            # Whoever gave up while it waited is left out; from here on nobody can.
            batch = [job for job in taken if job is not None and job.future.set_running_or_notify_cancel()]
            if batch:
                self._write(batch)
            del taken, batch  # a waiting thread must not keep the last jobs' values alive

    def _write(self, batch: list[_WriteJob]) -> None:
        try:
            endings = self._commit(batch)
        except Exception as error:  # noqa: BLE001 - handed to those who wait; the thread has to live on
            endings = [(None, _copied(error)) for _ in batch]
        for job, (result, error) in zip(batch, endings, strict=True):
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)

    def _commit(self, batch: list[_WriteJob]) -> list[_Ending]:
        connection = self._connection
        with self._guard, told(self._path):
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

        Raises that error where the database gave up the whole transaction for it, others' work included.
        """
        connection = self._connection
        connection.execute("SAVEPOINT job")
        try:
            result = job.work(connection)
        except Exception as error:  # handed to whoever waits for this job
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO job; RELEASE job")
            return None, problem_of(self._path, error)
        connection.execute("RELEASE job")
        return result, None


def _copied(error: Exception) -> Exception:
    # Each of those who wait adds its own frames to what it is handed.
    return StoreError(str(error)) if isinstance(error, StoreError) else error
