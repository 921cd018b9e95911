"""Protocols for the parts of a database connection that the store uses, and the clock of the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, Protocol, Self

__all__ = [
    "MEMORY",
    "Connection",
    "Cursor",
    "FileConnection",
    "database_time",
    "database_timestamp",
]

# The path of a store without a file, which ends with its process.
MEMORY: Final = ":memory:"


class Cursor(Protocol):
    """The result rows of a statement."""

    @property
    def get(self) -> Any:
        """Return the rows in their simplest form: one row of one column is its value, no row is None."""
        ...

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, if there is one."""
        ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def close(self) -> None:
        """Drop the rows that were not read."""
        ...


class Connection(Protocol):
    """A connection to a store of any kind, inside of a transaction."""

    def execute(self, statements: str, bindings: Sequence[Any] | None = None, /) -> Cursor:
        """Run a statement, with a value for each `?` in it."""
        ...


class FileConnection(Connection, Protocol):
    """A connection to SQLite; a `with` block is a transaction.

    It is an `apsw.Connection`; apsw's own type stubs use a type of Python 3.12 that 3.11 does not have.
    """

    transaction_mode: str

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""
        ...

    def set_busy_timeout(self, milliseconds: int, /) -> None:
        """Set how long to wait for other processes that write."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None, /
    ) -> bool | None: ...


# The clock of the database: the only one that all processes of a store share.

_NOW: Final = "SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)"


def database_time(connection: Connection) -> int:
    """Return the time of the database, in microseconds since 1970."""
    return int(connection.execute(_NOW).get)


def database_timestamp(connection: Connection) -> str:
    """Return the time of the database in the form of `Clock.now`."""
    then = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=database_time(connection))
    return then.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
