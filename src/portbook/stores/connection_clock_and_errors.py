"""What every table of the store uses: a database connection, its clock, pruning, errors.

- `Connection`, `Cursor`: protocols for the parts of a connection that the store uses.
- `database_time`: the only clock that all processes of a store share.
- `prune_rows`: deletes rows that are no longer needed, so many at a time that other writers do not wait
  long. Which rows those are, and when, is said where the rows are kept.
- `StoreError` and `BadLock`: the errors of SQLite, and of the lock file, as messages for operators. The
  database library is not imported here at module level, nor by `Store`: it is not needed where there is no
  file, which is the case at most starts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

__all__ = [
    "MEMORY",
    "BadLock",
    "Connection",
    "FileConnection",
    "StoreError",
    "UnknownOutcome",
    "as_store_error",
    "database_time",
    "database_timestamp",
    "in_turns",
    "problem_of",
    "prune_all",
    "prune_rows",
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


# Pruning.


class _Writes(Protocol):
    """The part of a store that deletes rows."""

    def submit(self, work: Callable[[Connection], int], /) -> Future[int]:
        """Run `work` in a transaction."""
        ...


# The most rows that one statement deletes. What is left goes with the next one.
PRUNED_AT_ONCE: Final = 1000


def prune_rows(
    connection: Connection,
    table: str,
    key: str,
    condition: str,
    values: tuple[object, ...],
    *,
    limit: int = PRUNED_AT_ONCE,
    kept: int = 0,
) -> int:
    """Delete some of the rows that a condition selects, but the first `kept` of them; return how many.

    `key` names the columns by which rows are told apart. The condition may end with an order.
    """
    deleted = connection.execute(
        f"DELETE FROM {table} WHERE ({key}) IN "  # noqa: S608 - names and conditions are constants
        f"(SELECT {key} FROM {table} WHERE {condition} LIMIT ? OFFSET ?) RETURNING 1",
        (*values, limit, kept),
    )
    return sum(1 for _ in deleted)


async def prune_all(store: _Writes, table: str, key: str, condition: str, values: tuple[object, ...]) -> None:
    """Delete all rows that a condition selects, in turns; `prune_rows` has the rest.

    Raises `StoreError` where that cannot be written.
    """
    await in_turns(store, lambda connection: prune_rows(connection, table, key, condition, values))


async def in_turns(store: _Writes, prune: Callable[[Connection], int], limit: int = PRUNED_AT_ONCE) -> None:
    """Call `prune` in one transaction after the other, until it deletes fewer than `limit` rows.

    Other writers have their turn in between. Raises `StoreError` where that cannot be written.
    """
    while await asyncio.wrap_future(store.submit(prune)) >= limit:
        pass


# Errors.


class StoreError(OSError):
    """The store cannot be read or written; the message names the file, the reason and the fix."""


class UnknownOutcome(StoreError):
    """Something was written or was not: the connection ended before the database could say which."""


class BadLock(ValueError):
    """A lock file that cannot be used; the message has the line and says what to do."""


_DAMAGED: Final = "damaged, or not a database; restore it from a backup, or move it away"
_UNWRITABLE: Final = "cannot be written; check its permissions and those of its folder"

# By the names of the library's exceptions.
_SENTENCES: Final = {
    "BusyError": "locked by a different process for too long; retry",
    "FullError": "the disk is full; free some space",
    "ReadOnlyError": _UNWRITABLE,
    "PermissionsError": _UNWRITABLE,
    "CantOpenError": "cannot be opened; check that its folder exists and can be written",
    "NotADBError": _DAMAGED,
    "CorruptError": _DAMAGED,
    "IOError": "the disk reports an error; check the disk and its free space",
}


def problem_of(path: Path, error: Exception) -> Exception:
    """Return an exception of the library as a `StoreError` about `path`; return all others unchanged."""
    import apsw

    if not isinstance(error, apsw.Error):
        return error
    name = type(error).__name__
    return StoreError(f"{path}: {_SENTENCES.get(name, f'cannot be used: {name}')}")


@contextlib.contextmanager
def as_store_error(path: Path) -> Generator[None]:
    """Convert the library's exceptions to `StoreError`."""
    try:
        yield
    except Exception as error:
        problem = problem_of(path, error)
        if problem is error:
            raise
        raise problem from error
