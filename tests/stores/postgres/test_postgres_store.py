"""The store in PostgreSQL, through its port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from portbook.stores.connection_and_clock import Connection
from portbook.stores.postgres.lease_terms import LeaseTerms
from portbook.stores.postgres.postgres_store import PostgresStore
from portbook.stores.store_errors import StoreError
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
