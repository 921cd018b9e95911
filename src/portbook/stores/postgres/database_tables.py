"""The tables of a store in PostgreSQL: the steps of `stores/migrations.py`, under a lock of the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from portbook.stores.migrations import HMAC_KEY_BYTES, STEPS, TABLES_VERSION, is_usable, newer
from portbook.stores.postgres.bounded_connection import BoundedConnection
from portbook.stores.store_errors import StoreError

__all__ = ["key_of_database", "migrate_database", "version_of_database"]

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
