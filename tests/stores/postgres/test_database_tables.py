"""Tables in PostgreSQL: made once, whoever comes first, and used one version ahead."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from portbook.stores.migrations import STEPS, TABLES_VERSION
from portbook.stores.postgres import database_tables
from portbook.stores.postgres.bounded_connection import BoundedConnection
from portbook.stores.postgres.database_tables import migrate_database, version_of_database
from portbook.stores.postgres.postgres_store import PostgresStore
from portbook.stores.store_errors import StoreError


def test_of_processes_that_start_together_one_makes_the_tables(postgres_schema: str) -> None:
    def key(_: int) -> bytes:
        store = PostgresStore(postgres_schema)
        try:
            return store.key
        finally:
            store.close()

    with ThreadPoolExecutor(4) as pool:
        keys = set(pool.map(key, range(4)))
    assert len(keys) == 1


@pytest.mark.parametrize("version", range(1, TABLES_VERSION))
def test_tables_of_an_older_version_are_migrated(
    postgres_schema: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = BoundedConnection(postgres_schema)
    with monkeypatch.context() as older:
        older.setattr(database_tables, "STEPS", STEPS[:version])
        older.setattr(database_tables, "TABLES_VERSION", version)
        assert migrate_database(connection, "place", os.urandom) == 0
    key = connection.execute("SELECT value FROM secret").get
    assert migrate_database(connection, "place", os.urandom) == version
    assert version_of_database(connection, "place") == TABLES_VERSION
    assert connection.execute("SELECT value FROM secret").get == key
    connection.close()


def test_tables_one_version_ahead_are_used_and_those_beyond_refused(postgres_schema: str) -> None:
    store = PostgresStore(postgres_schema)
    key = store.key
    with psycopg.connect(postgres_schema, autocommit=True) as newer:
        newer.execute("UPDATE portbook_tables SET version = version + 1")
        newer.execute("ALTER TABLE ticket ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'")
    ahead = PostgresStore(postgres_schema)
    assert ahead.key == key
    with psycopg.connect(postgres_schema, autocommit=True) as newest:
        assert newest.execute("SELECT version FROM portbook_tables").fetchone() == (TABLES_VERSION + 1,)
        newest.execute("UPDATE portbook_tables SET version = version + 1")
    refused = PostgresStore(postgres_schema)
    with pytest.raises(StoreError, match="made by a newer version of Portbook"):
        refused.read(lambda _: None, None)
    for each in (store, ahead, refused):
        each.close()


@pytest.mark.parametrize("table", ["portbook_tables", "secret"])
def test_tables_that_were_emptied_are_told(postgres_schema: str, table: str) -> None:
    store = PostgresStore(postgres_schema)
    assert store.key
    store.close()
    with psycopg.connect(postgres_schema, autocommit=True) as database:
        database.execute(f"DELETE FROM {table}".encode())
    emptied = PostgresStore(postgres_schema)
    with pytest.raises(StoreError, match="its tables are not whole"):
        emptied.read(lambda _: None, None)
    with pytest.raises(StoreError, match="its tables are not whole"):
        emptied.submit(lambda _: None).result()
    emptied.close()
