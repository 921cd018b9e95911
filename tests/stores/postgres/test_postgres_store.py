"""The store in PostgreSQL, through its port."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.migrations import STEPS, TABLES_VERSION
from portbook.stores.postgres import postgres_store
from portbook.stores.postgres.connection_address_and_errors import BoundedConnection
from portbook.stores.postgres.leases import LeaseTerms
from portbook.stores.postgres.postgres_store import PostgresStore, migrate_database, version_of_database
from portbook.stores.stored_sessions import KeptSession, SessionStore
from portbook.stores.upstream_status_and_offers import Observation, ObservationStore, UpstreamStore
from support.approval_world import FixedClock


@pytest.fixture
def store(postgres_schema: str) -> Iterator[PostgresStore]:
    made = PostgresStore(postgres_schema)
    yield made
    made.close()


def test_a_query_sees_one_state_of_the_store(store: PostgresStore, postgres_schema: str) -> None:
    def count(connection: Connection) -> int:
        return int(connection.execute("SELECT count(*) FROM rate_bucket").get)

    def twice(connection: Connection) -> tuple[int, int]:
        before = count(connection)
        with psycopg.connect(postgres_schema, autocommit=True) as other:
            other.execute("INSERT INTO rate_bucket VALUES ('a', 0)")
        return before, count(connection)

    assert store.read(twice, (9, 9)) == (0, 0)
    assert asyncio.run(store.fetch(count, 9)) == 1
    with pytest.raises(StoreError, match="can only be read"):
        store.read(lambda connection: connection.execute("DELETE FROM rate_bucket"), None)


def test_the_event_loop_goes_on_while_a_read_waits(store: PostgresStore) -> None:
    async def scenario() -> int:
        turns = 0
        reading = asyncio.ensure_future(
            store.fetch(lambda connection: connection.execute("SELECT pg_sleep(0.2)").get, None)
        )
        while not reading.done():
            turns += 1
            await asyncio.sleep(0.001)
        return turns

    assert asyncio.run(scenario()) > 1


def test_a_database_that_is_away_fails_at_once_and_is_named_without_its_password(tmp_path: Path) -> None:
    store = PostgresStore(f"postgresql://ada:canary@/x?host={tmp_path}")
    began = time.monotonic()
    for _ in range(5):
        with pytest.raises(StoreError, match="cannot be reached") as caught:
            store.read(lambda _: None, None)
        assert "canary" not in str(caught.value)
        with pytest.raises(StoreError, match="cannot be reached"):
            store.submit(lambda _: None).result()
        with pytest.raises(StoreError):
            assert store.key
    assert time.monotonic() - began < 60
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.submit(lambda _: None)


def test_sessions_servers_and_observations_are_kept(store: PostgresStore) -> None:
    clock = FixedClock()
    sessions, upstreams = SessionStore(store, clock), UpstreamStore(store, clock)
    observations = ObservationStore(store, clock)

    async def scenario() -> None:
        await sessions.begin("s", "bound", {"a": 1})
        await sessions.save("s", lambda _: {"a": 2})
        sessions.touch("s")
        assert await sessions.fetch("s") == KeptSession("bound", {"a": 2})
        await sessions.forget("s")
        assert sessions.load("s") is None
        await upstreams.report("p", [{"name": "files"}])
        await upstreams.report("p", [{"name": "files", "state": "ready"}])
        assert upstreams.statuses() == [{"name": "files", "state": "ready", "process": "p"}]
        await upstreams.ask_restart("files")
        clock.advance(1)
        await upstreams.ask_restart("files")
        assert upstreams.restarts_since("2026") == {"files": clock.now()}

    asyncio.run(scenario())
    observations.remember("files", {"tools": []}).result()
    seen_at = clock.now()
    clock.advance(1)
    observations.remember("files", {"tools": []}).result()
    assert observations.of("files") == Observation({"tools": []}, seen_at)


def test_a_lease_is_renewed_while_other_work_waits(postgres_schema: str) -> None:
    terms = LeaseTerms(length_s=600.0, renew_s=0.01, margin_s=100.0)
    store = PostgresStore(postgres_schema, lease_terms=terms)
    owner = store.owner(lambda: f"owner-{time.monotonic_ns()}")
    since = owner.hold()
    owner.confirm(store.submit(owner.claim).result(), since)

    def until_when(connection: Connection) -> int:
        return int(connection.execute("SELECT max(expires_at) FROM lease").get)

    with psycopg.connect(postgres_schema) as other:
        other.execute("LOCK TABLE ticket IN ACCESS EXCLUSIVE MODE")
        waiting = store.submit(lambda connection: connection.execute("SELECT count(*) FROM ticket").get)
        before, deadline = store.read(until_when, 0), time.monotonic() + 60
        while store.read(until_when, 0) == before:
            assert time.monotonic() < deadline
        other.rollback()
    assert waiting.result() == 0
    store.close()


# Tables in PostgreSQL: made once, whoever comes first, and used one version ahead.


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
        older.setattr(postgres_store, "STEPS", STEPS[:version])
        older.setattr(postgres_store, "TABLES_VERSION", version)
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
