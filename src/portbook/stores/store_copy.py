"""Copies a store in a file into a database, with its key, so that approvals and keys stay valid there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from portbook.stores.approval_rows import expire_open
from portbook.stores.connection_types import Connection
from portbook.stores.errors import StoreError

if TYPE_CHECKING:
    from portbook.stores.sqlite import Store
    from portbook.stores.store_port import StorePort

__all__ = ["copy_store"]

# What belongs to running processes, not to the store.
_PASSING: Final = ("commit_proof", "lease", "upstream", "upstream_restart")

_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
_USED: Final = "SELECT (SELECT count(*) FROM ticket) + (SELECT count(*) FROM caller_key)"

Rows = tuple[Sequence[str], list[tuple[Any, ...]]]


def copy_store(source: Store, target: StorePort) -> dict[str, int]:
    """Copy what is in `source` to `target`, where nothing may be yet; return how many rows of each table.

    What was open in `source` expires there in the same moment: an approval must not be redeemed in both. A
    copy that fails after that leaves approvals expired, and no call runs twice.

    Raises `StoreError` where one of them cannot be used, or `target` is in use already.
    """
    if target.read(lambda connection: int(connection.execute(_USED).get), 0):
        raise StoreError(f"{target.place}: has approvals or keys already; copy into an empty database")

    def take(connection: Connection) -> dict[str, Rows]:
        names = [str(row[0]) for row in connection.execute(_TABLES)]
        taken = {name: _rows_of(connection, name) for name in names if name not in _PASSING}
        expire_open(connection)
        return taken

    taken = source.submit(take).result()
    target.submit(lambda connection: _put(connection, taken), lock="copy").result()
    return {name: len(rows) for name, (_, rows) in taken.items()}


def _rows_of(connection: Connection, table: str) -> Rows:
    columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    listed = ", ".join(columns)
    return columns, [*connection.execute(f"SELECT {listed} FROM {table}")]  # noqa: S608 - names of our own tables


def _put(connection: Connection, taken: Mapping[str, Rows]) -> None:
    if connection.execute(_USED).get:
        raise StoreError("the database is in use already; copy into an empty one")
    connection.execute("DELETE FROM secret")  # the key of the file takes its place
    for table, (columns, rows) in taken.items():
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - as above
        for row in rows:
            connection.execute(statement, row)
