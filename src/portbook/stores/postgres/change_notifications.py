"""`ChangeListener`: learns of changes in the database by any process.

It reads again what was asked to be watched, such as the keys of callers. It has a connection of its own,
straight to the server. Other processes notify it after each change. It also polls, for a notification may be
lost: the snapshot of a database differs after every transaction that wrote.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, NoReturn, TypeVar

from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.postgres.connection_address_and_errors import (
    BoundedConnection,
    database_problem,
)
from portbook.stores.postgres.database_writer import CHANNEL

__all__ = ["ChangeListener"]

T = TypeVar("T")

# A key that was revoked is refused within a second: what was not confirmed for that long is not believed.
_BELIEVED_S: Final = 1.0
_POLL_S: Final = 0.2
_RETRY_S: Final = 0.2

_SNAPSHOT: Final = b"SELECT pg_current_snapshot()::text"


class WatchedRows(Generic[T]):
    """The result of a query as of at most a second ago."""

    def __init__(self, listener: ChangeListener, query: Callable[[Connection], T], absent: T) -> None:
        self.query = query
        self.result = absent
        self.is_read = threading.Event()
        self._listener = listener

    def __call__(self) -> T:
        """Return it. Raises `StoreError` where the database did not confirm it within the last second."""
        self._listener.require_confirmed()
        if not self.is_read.wait(_BELIEVED_S):  # it was asked for a moment ago, and `absent` may be wrong
            self._listener.refuse()
        return self.result


class ChangeListener:
    """A thread that runs once something is watched."""

    def __init__(self, connect: Callable[[], BoundedConnection], place: str, name: str) -> None:
        """Listen through what `connect` returns; `name` is that of this process in notifications."""
        self._connect = connect
        self._place = place
        self._name = name
        self._watched: list[WatchedRows[Any]] = []
        self._snapshot = ""
        self._changes = 0
        self._confirmed_at = float("-inf")
        self._problem: StoreError | None = None
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._has_looked = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def changes(self) -> int:
        """Return a number that differs after every change."""
        self.start()
        return self._changes

    def watch(self, query: Callable[[Connection], T], absent: T) -> WatchedRows[T]:
        """Return what gives the result of `query`, which is read again after every change."""
        watched = WatchedRows(self, query, absent)
        self._watched.append(watched)
        return watched

    def start(self) -> None:
        """Begin to listen, if that was not begun before, and wait for the first look."""
        if self._has_looked.is_set():
            return
        with self._starting:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._work, name="portbook-changes", daemon=True)
                self._thread.start()
        if self._thread is not None:
            self._has_looked.wait()

    def require_confirmed(self) -> None:
        """Raise `StoreError` where the database did not confirm the results within the last second."""
        self.start()
        if time.monotonic() - self._confirmed_at > _BELIEVED_S:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raise `StoreError`: what is watched is not known."""
        # Not the same object again: each call adds its own frames.
        raise StoreError(str(self._problem or f"{self._place}: took too long to answer; retry"))

    def close(self) -> None:
        """End the thread."""
        with self._starting:
            self._closing.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            while not self._closing.is_set():
                self._listen_once()
                self._has_looked.set()
                self._closing.wait(_RETRY_S)
        finally:
            self._has_looked.set()  # nobody waits for a thread that has ended

    def _listen_once(self) -> None:
        """Listen over one connection, for as long as that goes well."""
        connection: BoundedConnection | None = None
        try:
            connection = self._connect()
            self._snapshot = ""  # a different server may count from the start again
            self._listen(connection)
        except Exception as error:  # noqa: BLE001 - a row that cannot be read must not end the thread
            problem = database_problem(self._place, error)
            if not isinstance(problem, StoreError):
                problem = StoreError(f"{self._place}: what is stored cannot be read: {type(error).__name__}")
            self._problem = problem
        finally:
            if connection is not None:
                connection.close()

    def _listen(self, connection: BoundedConnection) -> None:
        connection.plain(f"LISTEN {CHANNEL}".encode())
        while not self._closing.is_set():
            self._look(connection)
            for notification in connection.raw.notifies(timeout=_POLL_S, stop_after=1):
                del notification  # it only wakes: everything is read from the tables

    def _look(self, connection: BoundedConnection) -> None:
        """Read what is watched, if anything has changed."""
        since = time.monotonic()
        snapshot = str(connection.plain(_SNAPSHOT).get)
        watched = tuple(self._watched)
        if snapshot != self._snapshot or not all(each.is_read.is_set() for each in watched):
            connection.begin(is_write=False)
            try:
                for each in watched:
                    each.result = each.query(connection)
                    each.is_read.set()
            finally:
                connection.roll_back()
            self._changes += 1
            self._snapshot = snapshot
        self._confirmed_at, self._problem = since, None
        self._has_looked.set()
