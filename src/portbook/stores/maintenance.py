"""What `portbook store` does to a store of any kind: status, check, copy, and restore after a backup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from portbook.clock import Clock, until
from portbook.stores.approval_sql import expire_open
from portbook.stores.connection_clock_and_errors import (
    Connection,
    StoreError,
    database_time,
    database_timestamp,
)
from portbook.stores.migrations import TABLES_VERSION
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from portbook.stores.sqlite_store import Store
    from portbook.stores.store_port import StorePort

__all__ = ["Restoration", "copy_store", "problems_of_store", "restore_store", "store_status"]

_EPOCH: Final = "SELECT coalesce(max(epoch), 0) FROM restoration"

# For people to read: nothing depends on the clock of the one who restores.
_OPEN: Final = (
    "SELECT count(*) FROM ticket WHERE state IN ('pending', 'approved', 'running') AND expires_at > ?"
)

# That a ticket has expired is written nowhere. Whether the process of a running call lives is not asked.
_STATES: Final = (
    "SELECT CASE WHEN state IN ('pending', 'approved') AND expires_at <= ? THEN 'expired' ELSE state END "
    "AS state_now, count(*) FROM ticket GROUP BY state_now ORDER BY state_now"
)

# Records have the times of their machine, approvals those of the database: people compare them.
_CLOCK_APART_S: Final = 2.0


class Restoration(NamedTuple):
    """What `restore_store` did."""

    epoch: int
    """How often the store was restored."""
    expired_approvals: int
    ended_sessions: int
    valid_keys: int
    """Keys that are valid now; some of them may have been revoked since the backup."""


def store_status(store: StorePort) -> dict[str, Any]:
    """Return where the store is, the version of its tables and what is in them. It migrates nothing.

    Raises `StoreError` where it cannot be read.
    """
    version = store.tables_version()
    status: dict[str, Any] = {
        "place": store.place,
        "kind": "sqlite" if store.path is not None else "postgresql",
        "tables_version": version,
        "supported_version": TABLES_VERSION,
        "is_current": version >= TABLES_VERSION,
    }
    return status | store.read(_counts, {}) if status["is_current"] else status


def problems_of_store(store: StorePort, clock: Clock) -> list[str]:
    """Return what is wrong with a store that can be opened.

    Raises `StoreError` where it cannot be read or written.
    """
    problems: list[str] = []
    if store.path is not None:
        said = store.read(lambda connection: connection.execute("PRAGMA integrity_check").get, "ok")
        if said != "ok":
            problems.append("it is damaged; restore it from a backup, then run `portbook store restore`")
    store.submit(lambda connection: connection.execute("SELECT 1").get).result()
    apart_s = abs(store.read(database_time, 0) / 1_000_000 - until("1970-01-01T00:00:00.000Z", clock.now()))
    if apart_s > _CLOCK_APART_S:
        problems.append(
            f"the clocks of this machine and of the database are {apart_s:.0f} s apart; set both by NTP, "
            "because records have the times of the machine, and approvals those of the database"
        )
    return problems


def restore_store(store: StorePort, now: str) -> Restoration:
    """Make a store safe that was restored from a backup, at `now` or, where machines share it, by its clock.

    What happened after the backup is not in it, so nothing may be redeemed that was open then: it may have
    been redeemed since. Approvals that were open expire, owners of calls are lost, sessions end.

    Raises `StoreError` where that cannot be written.
    """

    def write(connection: Connection) -> Restoration:
        epoch = int(connection.execute(_EPOCH).get) + 1
        at = database_timestamp(connection) if store.spans_machines else now
        connection.execute("INSERT INTO restoration (epoch, restored_at) VALUES (?, ?)", (epoch, at))
        expired = int(connection.execute(_OPEN, (at,)).get)
        expire_open(connection)
        ended = connection.execute("DELETE FROM session RETURNING digest")
        restored = Restoration(epoch, expired, len([*ended]), _valid_keys(connection))
        connection.execute("DELETE FROM lease")
        return restored

    return store.submit(write, lock="restoration").result()


def _counts(connection: Connection) -> dict[str, Any]:
    states = connection.execute(_STATES, (database_timestamp(connection),))
    return {
        "approvals": {str(state): int(count) for state, count in states},
        "keys": _valid_keys(connection),
        "sessions": int(connection.execute("SELECT count(*) FROM session").get),
        "epoch": int(connection.execute(_EPOCH).get),
        "restored_at": connection.execute("SELECT max(restored_at) FROM restoration").get,
    }


def _valid_keys(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM caller_key WHERE revoked_at IS NULL").get)


# Copies a store in a file into a database, with its key, so that approvals and keys stay valid there.

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
