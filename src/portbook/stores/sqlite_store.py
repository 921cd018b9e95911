"""`Store`: one SQLite file for persistent state, shared by all server and operator processes.

Writes go through one thread (see `sqlite_writer`) and are on disk before they are acknowledged. Reads run on
the calling thread and do not wait for writes. The first write creates the file; reads do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from portbook.stores.connection_clock_and_errors import (
    MEMORY,
    Connection,
    FileConnection,
    StoreError,
    as_store_error,
)

if TYPE_CHECKING:
    from portbook.stores.live_processes import Owner
    from portbook.stores.sqlite_writer import StoreWriter
    from portbook.stores.store_port import Version

__all__ = ["Store"]

T = TypeVar("T")

_KEY: Final = "SELECT value FROM secret WHERE name = 'hmac'"

# Space for a few tickets; with less free on the disk, the next one may not fit.
_ROOM: Final = 1 << 18


class Store:
    """A store at a path. The file is opened on first use, and created by the first write."""

    def __init__(self, path: Path, *, draw: Callable[[int], bytes] = os.urandom) -> None:
        """Use the store at `path`, or one in memory where that is `:memory:`.

        `draw` returns random bytes for the key of a new store.
        """
        self.path = path
        self.is_memory = path.name == MEMORY
        self.spans_machines = False
        self._draw = draw
        self._key = b""
        self._connections: list[FileConnection] = []
        self._writer: StoreWriter | None = None
        self._is_closed = False
        self._inode: int | None = None
        """The inode of the opened file."""
        self._state = threading.Lock()
        """Held briefly to open and to close."""
        self._reading = threading.Lock()
        """Held to use the reading connection."""

    @property
    def place(self) -> str:
        """Return the path."""
        return str(self.path)

    @property
    def key(self) -> bytes:
        """Return the store's own key, for digests that only this store can compare.

        Raises `StoreError` where it cannot be read.
        """
        if not self._key:
            self._key = self._query(lambda connection: bytes(connection.execute(_KEY).get))
        return self._key

    def read(self, query: Callable[[Connection], T], absent: T) -> T:
        """Return the result of `query`, or `absent` where the store does not exist yet.

        Raises `StoreError` where it cannot be read.
        """
        return self._query(lambda connection: _of_one_state(connection, query)) if self._exists() else absent

    async def fetch(self, query: Callable[[Connection], T], absent: T) -> T:
        """Return what `read` returns, at once: it takes microseconds.

        Raises `StoreError` where it cannot be read.
        """
        return self.read(query, absent)

    def watched(self, query: Callable[[Connection], T], absent: T) -> Callable[[], T]:
        """Return what gives the result of `query`, which is read again after every write by any process."""
        return _WatchedQuery(self, query, absent)

    def submit(self, work: Callable[[Connection], T], *, lock: str | None = None) -> Future[T]:
        """Run `work` in a transaction; the future has its result once the transaction is on disk.

        There is one transaction at a time, so a `lock` is never needed.

        Raises `StoreError` where the store cannot be opened.
        """
        with self._state, as_store_error(self.path):
            reader = self._open()
            if self._writer is None:
                self._writer = self._open_writer(reader)
            return self._writer.submit(work)

    def version(self) -> Version:
        """Return a value that differs after every write by any process.

        Raises `StoreError` where it cannot be read.
        """
        if not self._exists():
            return (0, 0)
        own = 0 if self._writer is None else self._writer.commits
        return (own, self._query(lambda connection: int(connection.execute("PRAGMA data_version").get)))

    def tables_version(self) -> int:
        """Return the version of the tables as it is, 0 where there is no file; nothing is migrated.

        Raises `StoreError` where it cannot be read, or this Portbook cannot use such tables.
        """
        if self.is_memory or not self.path.exists():
            return 0
        from portbook.stores.sqlite_connection import (
            version_at,  # late: it brings the library of the database along
        )

        with as_store_error(self.path):
            return version_at(self.path)

    def owner(self, draw_name: Callable[[], str]) -> Owner:
        """Return this process as an owner of calls, which the others know by a lock beside the file."""
        from portbook.stores.live_processes import Owner, folder_of  # late: a start runs no call

        return Owner(None if self.is_memory else folder_of(self.path), draw_name())

    async def check(self) -> None:
        """Check that the store can be written or created.

        Raises `StoreError` where it cannot.
        """
        if self._exists():
            await asyncio.wrap_future(self.submit(lambda _: None))
            self._require_room()
        else:
            folder = next(folder for folder in self.path.absolute().parents if folder.exists())
            if not os.access(folder, os.W_OK | os.X_OK):
                raise StoreError(f"{self.path}: cannot be created; check the permissions of its folder")

    def _require_room(self) -> None:
        if self.is_memory:
            return
        disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize < _ROOM:
            raise StoreError(f"{self.path}: the disk is full; free some space")

    def _require_same(self) -> None:
        """Raise `StoreError` where the open file was replaced or removed at its path.

        Other processes would not see writes to the open file, and this one would not see keys revoked in the
        new file.
        """
        if self.is_memory or self._inode is None:
            return
        try:
            is_same = self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise StoreError(f"{self.path}: was replaced or removed while it was open; restart")

    def close(self) -> None:
        """Finish submitted work and close the file; the store cannot be used afterwards."""
        with self._state:
            is_first, self._is_closed = not self._is_closed, True
        if is_first and self._writer is not None:
            self._writer.close()
        with self._reading:
            for connection in self._connections:
                connection.close()

    def _exists(self) -> bool:
        return bool(self._connections) or self.is_memory or self.path.exists()

    def _query(self, query: Callable[[FileConnection], T]) -> T:
        with as_store_error(self.path):
            with self._state:
                connection = self._open()
            with self._reading:
                return query(connection)

    def _open(self) -> FileConnection:
        """Return the reading connection."""
        if self._is_closed:
            raise StoreError(f"{self.path}: closed")
        if not self._connections:
            self._connections.append(self._connect())
            self._inode = None if self.is_memory else self.path.stat().st_ino
        self._require_same()
        return self._connections[0]

    def _open_writer(self, reader: FileConnection) -> StoreWriter:
        from portbook.stores.sqlite_writer import StoreWriter  # late: few processes write

        if self.is_memory:  # has a single connection
            return StoreWriter(reader, self._reading, self.path)
        self._connections.append(self._connect())
        return StoreWriter(self._connections[-1], contextlib.nullcontext(), self.path)

    def _connect(self) -> FileConnection:
        from portbook.stores.sqlite_connection import connect

        try:
            return connect(self.path, self._draw)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be opened: {error.strerror}") from error


def _of_one_state(connection: FileConnection, query: Callable[[Connection], T]) -> T:
    connection.execute("BEGIN")
    try:
        return query(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


class _WatchedQuery(Generic[T]):
    """The result of a query, read again when the version of the store has changed."""

    def __init__(self, store: Store, query: Callable[[Connection], T], absent: T) -> None:
        self._store = store
        self._query = query
        self._absent = self._result = absent
        self._version: Version | None = None

    def __call__(self) -> T:
        version = self._store.version()
        if version != self._version:
            self._result = self._store.read(self._query, self._absent)
            self._version = version
        return self._result
