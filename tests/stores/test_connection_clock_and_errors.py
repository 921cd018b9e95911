"""The time of the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from portbook.stores.connection_clock_and_errors import Connection, database_time, prune_rows
from portbook.stores.postgres.postgres_store import PostgresStore
from portbook.stores.sqlite_store import Store
from portbook.stores.store_port import StorePort


def test_the_time_of_a_file_is_that_of_the_machine_in_microseconds(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    before = time.time()
    found = store.submit(database_time).result()
    store.close()
    assert before - 0.01 <= found / 1e6 <= time.time() + 0.01


# Rows that are no longer needed go a few at a time, in the order that the condition says.


@pytest.fixture(params=["file", "database"])
def any_store(request: pytest.FixtureRequest, store: Store) -> Iterator[StorePort]:
    if request.param == "file":
        yield store
        return
    made = PostgresStore(request.getfixturevalue("postgres_schema"))
    yield made
    made.close()


def left(connection: Connection) -> list[int]:
    return [int(row[0]) for row in connection.execute("SELECT full_at FROM rate_bucket ORDER BY full_at")]


def test_rows_are_deleted_some_at_a_time_and_the_first_are_kept(any_store: StorePort) -> None:
    def write(connection: Connection) -> list[tuple[int, list[int]]]:
        for number in range(8):
            row = (str(number), number)
            connection.execute("INSERT INTO rate_bucket (caller, full_at) VALUES (?, ?)", row)
        steps: list[tuple[int, list[int]]] = []
        for limit, kept in ((2, 0), (100, 2), (100, 0)):
            old = "full_at < ? ORDER BY full_at"
            went = prune_rows(connection, "rate_bucket", "caller, full_at", old, (7,), limit=limit, kept=kept)
            steps.append((went, left(connection)))
        return steps

    assert any_store.submit(write).result() == [(2, [2, 3, 4, 5, 6, 7]), (3, [2, 3, 7]), (2, [7])]
