"""What other processes change is known here, and what cannot be confirmed is not believed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from portbook.clock import SystemClock
from portbook.stores.caller_keys import Keys
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.postgres.postgres_store import PostgresStore
from support.postgres_nodes import StallingProxy


@pytest.fixture
def store(postgres_schema: str) -> Iterator[PostgresStore]:
    made = PostgresStore(postgres_schema)
    yield made
    made.close()


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def allowed(keys: Keys) -> list[str] | None:
    """The callers that have a key; None for a moment in which that is not known, on a busy machine."""
    try:
        return [key.name for key in keys.allowed()]
    except StoreError:
        return None


def test_a_change_without_a_notification_is_found_by_polling(
    store: PostgresStore, postgres_schema: str
) -> None:
    keys = Keys(store, SystemClock())
    assert keys.configured() is None
    with psycopg.connect(postgres_schema, autocommit=True) as database:  # notifies nobody
        database.execute(
            "INSERT INTO caller_key (id, name, sha256, tools, made_at) VALUES ('1', 'ada', 'x', '[]', '')"
        )
        eventually(lambda: allowed(keys) == ["ada"])
        before = store.version()
        database.execute("UPDATE caller_key SET revoked_at = 'now'")
        eventually(lambda: store.version() != before)
    eventually(lambda: allowed(keys) == [])


def test_what_the_database_no_longer_confirms_is_refused(postgres_database: str) -> None:
    proxy = StallingProxy(postgres_database)
    store = PostgresStore(proxy.url)
    keys = Keys(store, SystemClock())
    eventually(lambda: allowed(keys) == [])
    proxy.stall()
    time.sleep(1)  # what is promised: from here on, a key may have been revoked
    with pytest.raises(StoreError):
        keys.allowed()
    proxy.go_on()
    eventually(lambda: allowed(keys) == [])
    proxy.close()
    store.close()


def test_a_row_that_cannot_be_read_is_refused_and_read_once_it_is_mended(
    store: PostgresStore, postgres_schema: str
) -> None:
    keys = Keys(store, SystemClock())
    with psycopg.connect(postgres_schema, autocommit=True) as database:
        eventually(lambda: allowed(keys) == [])
        database.execute(
            "INSERT INTO caller_key (id, name, sha256, tools, made_at) VALUES ('1', 'ada', 'x', '*', '')"
        )

        def is_told() -> bool:
            try:
                keys.allowed()
            except StoreError as error:
                return "what is stored cannot be read" in str(error)
            return False

        eventually(is_told)
        database.execute("UPDATE caller_key SET tools = '[]'")
    eventually(lambda: allowed(keys) == ["ada"])


def test_what_is_watched_late_is_not_taken_for_absent(store: PostgresStore) -> None:
    asyncio.run(Keys(store, SystemClock()).create("ada"))
    store.version()  # the listener runs
    for _ in range(5):
        assert allowed(Keys(store, SystemClock())) in (["ada"], None)


def test_a_store_that_was_closed_before_it_listened_still_has_a_version(postgres_schema: str) -> None:
    store = PostgresStore(postgres_schema)
    store.submit(lambda _: None).result()
    store.close()
    asking = threading.Thread(target=store.version, daemon=True)
    asking.start()
    asking.join(60)
    assert not asking.is_alive()
