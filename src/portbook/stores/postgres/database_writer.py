"""`DatabaseWriter`: the writer of one process to PostgreSQL; jobs that wait together share a transaction.

The transactions of several processes run side by side, at READ COMMITTED: a job decides by a statement that
names what it expects, or under a lock. What was undone before it was committed may run again. Where the
answer to COMMIT is lost, the database is asked for a proof that the transaction left; where it cannot say,
the outcome is unknown, and never taken for "not written".

`CommitProof`: the number of a transaction tells nothing after a crash of the server, which gives the same
number to a later one. So each transaction that writes leaves a random value in a row of its writer, right
before COMMIT. To ask for it, the row is locked, which waits for a transaction that is still in progress.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

import psycopg
from psycopg import errors

from portbook.stores.connection_clock_and_errors import Connection, StoreError, UnknownOutcome
from portbook.stores.postgres.connection_address_and_errors import (
    BoundedConnection,
    database_problem,
    is_certainly_undone,
    is_connection_lost,
)
from portbook.stores.sqlite_writer import JobEnding, WriteJob, WriteQueue

__all__ = ["CHANNEL", "LOCK_NUMBER", "CommitProof", "DatabaseWriter"]

T = TypeVar("T")

# What a notification is sent on; it holds the name of its sender.
CHANNEL: Final = "portbook"

# A lock is known to the whole database, which may hold the tables of other Portbooks in other schemas: its
# number depends on the tables, too.
LOCK_NUMBER: Final = "hashtextextended({}, coalesce(to_regclass('portbook_tables')::oid::bigint, 0))"

# In the order of their numbers, so that two processes never wait for each other.
_LOCKS: Final = (
    f"SELECT pg_advisory_xact_lock(k) FROM (SELECT DISTINCT {LOCK_NUMBER.format('name')} AS k "  # noqa: S608
    "FROM unnest(%s::text[]) AS name ORDER BY k) AS locks"
).encode()

# For the rest of a transaction in which a job has waited for too long, and for what waited together with it.
_HURRY: Final = b"SET LOCAL lock_timeout = '20ms'"
_TOO_LONG: Final = (errors.LockNotAvailable, errors.QueryCanceled)

# How long to ask what became of a transaction, and how often.
_RESOLVE_S: Final = 15.0
_RESOLVE_PAUSE_S: Final = 0.2
_YIELD_S: Final = 0.05


class _Undone(Exception):
    """A transaction was certainly not committed, and can run again."""

    def __init__(self, reason: psycopg.Error) -> None:
        super().__init__()
        self.reason = reason


class DatabaseWriter:
    """Runs jobs in the order of arrival, several in one transaction."""

    def __init__(self, connect: Callable[[], BoundedConnection], place: str, name: str) -> None:
        """Write through what `connect` returns; `name` is that of the sender in notifications."""
        self._connect = connect
        self._place = place
        self._name = name
        self._connection: BoundedConnection | None = None
        self._has_news = False
        self._commits = 0
        self._proof = CommitProof()
        self._queue = WriteQueue(self._commit, self._notify)

    @property
    def commits(self) -> int:
        """Return how many transactions have been committed."""
        return self._commits

    def submit(self, work: Callable[[Connection], T], lock: str | None) -> Future[T]:
        """Run `work` on the writer's thread, under a lock; the future has its result once it is committed."""
        future: Future[T] = Future()
        self._queue.put(WriteJob(work, future, lock))
        return future

    def close(self) -> None:
        """Finish submitted jobs, then end the thread."""
        self._queue.close()
        self._drop()

    def _commit(self, batch: Sequence[WriteJob]) -> list[JobEnding]:
        """Return how each job ended, after one transaction for all of them, or one for each."""
        try:
            return self._attempt(batch)
        except _Undone as undone:
            is_too_long = isinstance(undone.reason, _TOO_LONG)
            if len(batch) > 1 and is_too_long:
                return self._commit_by_locks(batch)
            if is_too_long:
                raise database_problem(self._place, undone.reason) from None
            if len(batch) > 1 and not is_connection_lost(undone.reason):  # one of the jobs may be the reason
                return [ending for job in batch for ending in self._commit_alone(job)]
            if isinstance(undone.reason, errors.DeadlockDetected):
                time.sleep(_YIELD_S)  # else it takes again what the other process waits for
        try:
            return self._attempt(batch)
        except _Undone as undone:
            raise database_problem(self._place, undone.reason) from None

    def _commit_by_locks(self, batch: Sequence[WriteJob]) -> list[JobEnding]:
        """Return how each job ended, after a transaction for each lock: one of them was held for too long.

        Those that need none come first, and nobody waits for that lock again.
        """
        groups: dict[str | None, list[WriteJob]] = {None: []}
        for job in batch:
            groups.setdefault(job.lock, []).append(job)
        endings: dict[int, JobEnding] = {}
        for jobs in groups.values():
            if jobs:
                ended = self._commit_group(jobs)
                endings |= {id(job): ending for job, ending in zip(jobs, ended, strict=True)}
        return [endings[id(job)] for job in batch]

    def _commit_group(self, jobs: Sequence[WriteJob]) -> list[JobEnding]:
        try:
            return self._attempt(jobs, is_hurried=True)
        except _Undone as undone:
            if isinstance(undone.reason, _TOO_LONG):
                return [(None, database_problem(self._place, undone.reason)) for _ in jobs]
            return [ending for job in jobs for ending in self._commit_alone(job)]
        except StoreError as error:
            return [(None, type(error)(str(error))) for _ in jobs]

    def _commit_alone(self, job: WriteJob) -> list[JobEnding]:
        try:
            return self._commit([job])
        except StoreError as error:
            return [(None, error)]

    def _attempt(self, batch: Sequence[WriteJob], *, is_hurried: bool = False) -> list[JobEnding]:
        """Return how each job ended, after one transaction; one that `is_hurried` hardly waits for locks.

        Raises `_Undone` where it was rolled back and may run again, `UnknownOutcome` where that is not known,
        and any other `StoreError` where the database cannot be reached.
        """
        connection = self._connected()
        try:
            endings = self._run(connection, batch, is_hurried=is_hurried)
            has_written = self._proof.leave(connection)
        except psycopg.Error as error:
            self._give_up(connection)
            raise _Undone(error) from None
        except BaseException:
            self._give_up(connection)
            raise
        try:
            connection.commit()
        except psycopg.Error as error:
            if is_certainly_undone(error):
                self._give_up(connection)
                raise _Undone(error) from None
            self._drop()
            if has_written and not self._was_committed():
                raise _Undone(error) from None
        if has_written:
            self._proof.confirm()
            self._commits += 1
            self._has_news = True
        return endings

    def _run(
        self, connection: BoundedConnection, batch: Sequence[WriteJob], *, is_hurried: bool
    ) -> list[JobEnding]:
        connection.begin(is_write=True)
        locks = [job.lock for job in batch if job.lock is not None]
        if locks:
            if is_hurried:
                connection.plain(_HURRY)
            connection.plain(_LOCKS, (locks,))
        endings: list[JobEnding] = []
        for job in batch:
            connection.plain(b"SAVEPOINT job")
            try:
                result = job.work(connection)
            except Exception as error:
                if is_connection_lost(error) or isinstance(error, errors.DeadlockDetected):
                    raise  # it was not the job's fault
                connection.plain(b"ROLLBACK TO SAVEPOINT job; RELEASE SAVEPOINT job")
                if isinstance(error, _TOO_LONG):
                    connection.plain(_HURRY)  # those that wait together do not wait one after the other
                endings.append((None, database_problem(self._place, error)))
            else:
                connection.plain(b"RELEASE SAVEPOINT job")
                endings.append((result, None))
        return endings

    def _was_committed(self) -> bool:
        """Return whether the last transaction was committed. Raises `UnknownOutcome`."""
        deadline = time.monotonic() + _RESOLVE_S
        while time.monotonic() < deadline:
            try:
                was_committed = self._proof.ask(self._connected())
            except (psycopg.Error, StoreError):  # away, or its own process at the server goes on
                self._drop()
                time.sleep(_RESOLVE_PAUSE_S)
                continue
            if was_committed is not None:
                return was_committed
            break
        self._proof.forget()
        raise UnknownOutcome(
            f"{self._place}: the connection was lost before the database could confirm a change; "
            "it may have been made or not"
        )

    def _connected(self) -> BoundedConnection:
        """Return the connection. Raises `StoreError` where there is none."""
        if self._connection is not None and self._connection.is_lost:
            self._drop()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _give_up(self, connection: BoundedConnection) -> None:
        """Undo the transaction; drop a connection on which even that fails."""
        try:
            connection.roll_back()
        except psycopg.Error:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _notify(self) -> None:
        """Wake the other processes, outside of any transaction that a call waits for."""
        if not self._has_news or self._connection is None:
            return
        self._has_news = False
        try:
            self._connection.plain(b"SELECT pg_notify(%s, %s)", (CHANNEL, self._name))
        except psycopg.Error:
            self._drop()  # they poll as well


# The proof that a transaction was committed.

_BYTES: Final = 16

# Only in a transaction that has written, because only such a one has a number.
_LEAVE: Final = (
    b"INSERT INTO commit_proof (writer, value, written_at) "
    b"SELECT %s, %s, extract(epoch FROM clock_timestamp()) * 1000000 "
    b"WHERE pg_current_xact_id_if_assigned() IS NOT NULL "
    b"ON CONFLICT (writer) DO UPDATE SET value = excluded.value, written_at = excluded.written_at RETURNING 1"
)
# Where there is no row, one is put there: an INSERT that is in progress is waited for as well.
_ASK: Final = (
    b"INSERT INTO commit_proof (writer, value, written_at) VALUES (%s, '', 0) "
    b"ON CONFLICT (writer) DO UPDATE SET value = commit_proof.value RETURNING value"
)
# Of processes that ended long ago. Who misses its row does not know the outcome, which is safe.
_SWEEP: Final = (
    b"DELETE FROM commit_proof WHERE writer IN (SELECT writer FROM commit_proof "
    b"WHERE written_at < extract(epoch FROM clock_timestamp()) * 1000000 - 86400000000 "
    b"FOR UPDATE SKIP LOCKED)"
)


class CommitProof:
    """The proofs of one writer: one transaction after the other."""

    def __init__(self, draw: Callable[[int], bytes] = os.urandom) -> None:
        """Draw names and values by `draw`."""
        self._draw = draw
        self._writer = draw(_BYTES).hex()
        self._known: str | None = None
        """The value of the last transaction that was certainly committed."""
        self._value = ""

    def leave(self, connection: BoundedConnection) -> bool:
        """Return whether the transaction has written anything; if so, leave a proof. Right before COMMIT."""
        self._value = self._draw(_BYTES).hex()
        has_written = connection.plain(_LEAVE, (self._writer, self._value)).get is not None
        if has_written and self._known is None:
            connection.plain(_SWEEP)
        return has_written

    def confirm(self) -> None:
        """Note that the transaction was committed."""
        self._known = self._value

    def ask(self, connection: BoundedConnection) -> bool | None:
        """Return whether the transaction was committed; None where this database cannot tell.

        It was not where the value of the transaction before is still there. Any other value, or none, is that
        of a database that is older, or a different one.

        Raises `psycopg.Error`, also where the transaction is still in progress after a while.
        """
        connection.begin(is_write=True)
        try:
            value = str(connection.plain(_ASK, (self._writer,)).get)
        finally:
            connection.roll_back()
        if value == self._value:
            return True
        return False if value == self._known else None

    def forget(self) -> None:
        """Go on under a new name: a transaction that is unknown may still hold the row."""
        self._writer = self._draw(_BYTES).hex()
        self._known = None
