"""The upkeep of a store of any kind: what is in it, whether it works, and what a restored backup needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from portbook.clock import Clock, until
from portbook.stores.approval_rows import expire_open
from portbook.stores.connection_types import Connection
from portbook.stores.database_clock import database_time
from portbook.stores.migrations import TABLES_VERSION
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["Restoration", "problems_of_store", "restore_store", "store_status"]

_EPOCH: Final = "SELECT coalesce(max(epoch), 0) FROM restoration"

# For people to read: nothing depends on the clock of the one who restores.
_OPEN: Final = (
    "SELECT count(*) FROM ticket WHERE state IN ('pending', 'approved', 'running') AND expires_at > ?"
)

# Approvals expire by the clock of the machine that looks at them.
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
            "because approvals expire by the clock of the machine"
        )
    return problems


def restore_store(store: StorePort, now: str) -> Restoration:
    """Make a store safe that was restored from a backup.

    What happened after the backup is not in it, so nothing may be redeemed that was open then: it may have
    been redeemed since. Approvals that were open expire, owners of calls are lost, sessions end.

    Raises `StoreError` where that cannot be written.
    """

    def write(connection: Connection) -> Restoration:
        epoch = int(connection.execute(_EPOCH).get) + 1
        connection.execute("INSERT INTO restoration (epoch, restored_at) VALUES (?, ?)", (epoch, now))
        expired = int(connection.execute(_OPEN, (now,)).get)
        expire_open(connection)
        ended = connection.execute("DELETE FROM session RETURNING digest")
        restored = Restoration(epoch, expired, len([*ended]), _valid_keys(connection))
        connection.execute("DELETE FROM lease")
        return restored

    return store.submit(write, lock="restoration").result()


def _counts(connection: Connection) -> dict[str, Any]:
    states = connection.execute("SELECT state, count(*) FROM ticket GROUP BY state ORDER BY state")
    return {
        "approvals": {str(state): int(count) for state, count in states},
        "keys": _valid_keys(connection),
        "sessions": int(connection.execute("SELECT count(*) FROM session").get),
        "epoch": int(connection.execute(_EPOCH).get),
        "restored_at": connection.execute("SELECT max(restored_at) FROM restoration").get,
    }


def _valid_keys(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM caller_key WHERE revoked_at IS NULL").get)
