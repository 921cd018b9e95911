"""`PostgresStore`: the store in a PostgreSQL database, shared by the processes of any number of machines.

Reads and writes run on threads, so that the event loop never waits for the network. A connection that was
lost is made anew by itself; while the database is away, what needs it fails at once with a `StoreError`. The
tables are made by the steps of `stores/migrations.py`, under a lock of the database.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import psycopg

from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.migrations import HMAC_KEY_BYTES, STEPS, TABLES_VERSION, is_usable, newer
from portbook.stores.postgres.change_notifications import ChangeListener
from portbook.stores.postgres.connection_address_and_errors import (
    BoundedConnection,
    database_problem,
    place_of_database,
)
from portbook.stores.postgres.database_writer import DatabaseWriter
from portbook.stores.postgres.leases import LEASE_TERMS, LeaseOwner, LeaseTerms
from portbook.stores.store_port import Version

__all__ = ["PostgresStore", "migrate_database", "version_of_database"]

T = TypeVar("T")

# Reads at once, each on a connection of its own.
_READERS: Final = 4

# After an attempt to connect has failed, the next ones fail at once for so long.
_AWAY_S: Final = 0.3


class PostgresStore:
    """A store at an address. It is connected to on first use, and its tables are made or migrated then."""

    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        draw: Callable[[int], bytes] = os.urandom,
        lease_terms: LeaseTerms = LEASE_TERMS,
    ) -> None:
        """Use the database at `url`; at `direct_url` for notifications, where `url` leads to a pooler.

        `draw` returns random bytes for the key of a new store.

        Raises `StoreError` where `url` is not the address of a database.
        """
        self.place = place_of_database(url)
        self.path = None
        self.is_memory = False
        self.spans_machines = True
        self._url = url
        self._draw = draw
        self._lease_terms = lease_terms
        self._key = b""
        self._is_closed = False
        self._idle: list[BoundedConnection] = []
        self._away: tuple[float, StoreError] | None = None
        self._connecting = threading.Lock()
        """Held to connect: one attempt at a time is enough to know that the database is away."""
        self._state = threading.Lock()
        """Held briefly to take and to return connections."""
        self._threads = ThreadPoolExecutor(_READERS, "portbook-read")
        self._owners: list[LeaseOwner] = []
        name = os.urandom(8).hex()
        self._writer: DatabaseWriter | None = None
        self._renewer: DatabaseWriter | None = None
        """Writes the renewals of leases alone: a job that waits for a lock must not cost a lease."""
        self._make_writer = lambda: DatabaseWriter(lambda: self._connected(url), self.place, name)
        self._listener = ChangeListener(lambda: self._connected(direct_url or url), self.place, name)

    @property
    def key(self) -> bytes:
        """Return the store's own key. Waits only until the store was opened for the first time.

        Raises `StoreError` where it cannot be read.
        """
        if not self._key and self._away is None:
            self.read(lambda _: None, None)  # connecting reads it
        if not self._key:
            assert self._away is not None
            raise StoreError(str(self._away[1]))
        return self._key

    def read(self, query: Callable[[Connection], T], absent: T) -> T:
        """Return the result of `query`, which sees one state of the store. It always exists.

        Raises `StoreError` where it cannot be read.
        """
        connection, is_new = self._taken()
        try:
            return self._read_with(connection, query)
        except psycopg.Error as error:
            if is_new or not connection.is_lost:
                raise database_problem(self.place, error) from None
        # The server may have closed all connections that nobody used: it was started again.
        self._forget_idle()
        connection, _ = self._taken()
        try:
            return self._read_with(connection, query)
        except psycopg.Error as error:
            raise database_problem(self.place, error) from None

    async def fetch(self, query: Callable[[Connection], T], absent: T) -> T:
        """Return what `read` returns, which a thread waits for.

        Raises `StoreError` where it cannot be read.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.read, query, absent)

    def watched(self, query: Callable[[Connection], T], absent: T) -> Callable[[], T]:
        """Return what gives the result of `query` as of at most a second ago."""
        return self._listener.watch(query, absent)

    def submit(self, work: Callable[[Connection], T], *, lock: str | None = None) -> Future[T]:
        """Run `work` in a transaction; the future has its result once the transaction is on disk.

        Raises `StoreError` where the store is closed; the future raises it where the database is away.
        """
        with self._state:
            self._require_open()
            if self._writer is None:
                self._writer = self._make_writer()
            return self._writer.submit(work, lock)

    def version(self) -> Version:
        """Return a value that differs after every write by any process; it is only a number in memory."""
        own = 0 if self._writer is None else self._writer.commits
        return (own, self._listener.changes)

    def tables_version(self) -> int:
        """Return the version of the tables as it is, 0 where there are none; nothing is migrated.

        Raises `StoreError` where it cannot be read, or this Portbook cannot use such tables.
        """
        try:
            connection = BoundedConnection(self._url)
            try:
                return version_of_database(connection, self.place)
            finally:
                connection.close()
        except psycopg.Error as error:
            raise database_problem(self.place, error) from None

    def owner(self, draw_name: Callable[[], str]) -> LeaseOwner:
        """Return this process as an owner of calls, which the others know by a lease."""
        owner = LeaseOwner(draw_name, self._lease_terms, self.submit, renew=self._submit_renewal)
        self._owners.append(owner)
        return owner

    async def check(self) -> None:
        """Check that the store can be written.

        Raises `StoreError` where it cannot.
        """
        await asyncio.wrap_future(self.submit(lambda connection: connection.execute("SELECT 1").get))

    def close(self) -> None:
        """Finish submitted work, give up leases, and close the connections."""
        with self._state:
            if self._is_closed:
                return
        for owner in self._owners:
            owner.end()
        with self._state:
            self._is_closed = True
        for writer in (self._writer, self._renewer):
            if writer is not None:
                writer.close()
        self._listener.close()
        self._threads.shutdown()
        self._forget_idle()

    def _submit_renewal(self, work: Callable[[Connection], bool]) -> Future[bool]:
        with self._state:
            self._require_open()
            if self._renewer is None:
                self._renewer = self._make_writer()
            return self._renewer.submit(work, None)

    def _read_with(self, connection: BoundedConnection, query: Callable[[Connection], T]) -> T:
        try:
            connection.begin(is_write=False)
            try:
                return query(connection)
            finally:
                connection.roll_back()
        finally:
            self._return(connection)

    def _taken(self) -> tuple[BoundedConnection, bool]:
        """Return a connection that nobody uses, and whether it is new."""
        with self._state:
            self._require_open()
            if self._idle:
                return self._idle.pop(), False
        return self._connected(self._url), True

    def _return(self, connection: BoundedConnection) -> None:
        with self._state:
            if not connection.is_lost and not self._is_closed and len(self._idle) < _READERS:
                self._idle.append(connection)
                return
        connection.close()

    def _forget_idle(self) -> None:
        with self._state:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connected(self, url: str) -> BoundedConnection:
        """Return a new connection, to tables of the right version.

        Raises `StoreError` where the database is away, or its tables cannot be used.
        """
        with self._connecting:
            if self._away is not None and time.monotonic() < self._away[0]:
                raise StoreError(str(self._away[1]))
            try:
                return self._prepared(url)
            except (psycopg.Error, StoreError) as error:
                problem = database_problem(self.place, error)
                assert isinstance(problem, StoreError)
                self._away = (time.monotonic() + _AWAY_S, problem)
                raise problem from None

    def _prepared(self, url: str) -> BoundedConnection:
        connection = BoundedConnection(url)
        try:
            migrate_database(connection, self.place, self._draw)
            if not self._key:
                self._key = key_of_database(connection, self.place)
        except BaseException:
            connection.close()
            raise
        return connection

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.place}: closed")


# The tables.

# Any number that no other program uses for its locks: "portbook" as bytes.
_LOCK: Final = int.from_bytes(b"portbook", "big")

_EMPTY: Final = "its tables are not whole; restore them from a backup, or name a different database"
_VERSION: Final = "CREATE TABLE portbook_tables (version INTEGER NOT NULL)"
# Not to_regclass: within a transaction it goes on saying that there is none.
_IS_THERE: Final = (
    "SELECT 1 FROM pg_class WHERE relname = 'portbook_tables' AND relkind = 'r' AND pg_table_is_visible(oid)"
)


def key_of_database(connection: BoundedConnection, place: str) -> bytes:
    """Return the store's own key. Raises `StoreError` where there is none."""
    key = connection.execute("SELECT value FROM secret WHERE name = 'hmac'").get
    if key is None:
        raise StoreError(f"{place}: {_EMPTY}")
    return bytes(key)


def version_of_database(connection: BoundedConnection, place: str) -> int:
    """Return the version of the tables, 0 where there are none.

    Raises `StoreError` where this Portbook cannot use them.
    """
    if connection.execute(_IS_THERE).get is None:
        return 0
    version = connection.execute("SELECT version FROM portbook_tables").get
    if not isinstance(version, int):
        raise StoreError(f"{place}: {_EMPTY}")
    if not is_usable(version):
        raise newer(place, version)
    return version


def migrate_database(connection: BoundedConnection, place: str, draw: Callable[[int], bytes]) -> int:
    """Bring the tables to this version where they are older; return the version they had before.

    `draw` returns random bytes for the key of a new store. All steps are one transaction: a process that is
    killed meanwhile leaves the tables as they were.

    Raises `StoreError` where this Portbook cannot use them.
    """
    before = version_of_database(connection, place)
    if before >= TABLES_VERSION:
        return before
    if connection.execute("SELECT current_setting('server_encoding')").get != "UTF8":
        raise StoreError(f"{place}: create the database with the encoding UTF8")
    connection.begin(is_write=True)
    try:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        version = version_of_database(connection, place)  # a different process may have migrated it
        for step in STEPS[version:]:
            connection.execute(step)
        if not version:
            connection.execute("INSERT INTO secret (name, value) VALUES ('hmac', ?)", (draw(HMAC_KEY_BYTES),))
            connection.execute(_VERSION)
            connection.execute("INSERT INTO portbook_tables (version) VALUES (0)")
        if version < TABLES_VERSION:
            connection.execute("UPDATE portbook_tables SET version = ?", (TABLES_VERSION,))
        connection.commit()
    finally:
        connection.roll_back()
    return before
