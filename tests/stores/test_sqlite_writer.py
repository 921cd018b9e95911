"""The one writer: jobs share transactions and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import apsw
import pytest

from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.sqlite_store import Store

Job = Callable[[Connection], Any]


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "portbook.db" if request.param == "file" else Path(":memory:"))
    yield made
    made.close()


def put(name: str) -> Job:
    return lambda connection: connection.execute("INSERT INTO secret VALUES (?, x'00')", (name,)) and name


def names(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM secret WHERE name <> 'hmac'")]


def held_up(store: Store, *jobs: Job) -> list[Future[Any]]:
    """Submit jobs while the writer is busy, so that they share the next transaction."""
    is_busy, may_go_on = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        is_busy.set()
        assert may_go_on.wait(30)

    first = store.submit(hold)
    assert is_busy.wait(30)
    futures = [store.submit(job) for job in jobs]
    may_go_on.set()
    first.result(30)
    return futures


def outcome(future: Future[Any]) -> Any:
    error = future.exception(30)
    return error if error is not None else future.result()


def commits(store: Store) -> int:
    assert store._writer is not None
    return store._writer.commits


def test_jobs_that_wait_share_one_transaction(store: Store) -> None:
    futures = held_up(store, *(put(f"{number:03}") for number in range(100)))
    before_and_after = [outcome(future) for future in futures]
    assert before_and_after == [f"{number:03}" for number in range(100)]
    # One for the job that held the others up, one for all of those.
    assert commits(store) == 2


def test_a_transaction_does_not_grow_without_bound(store: Store) -> None:
    futures = held_up(store, *(put(f"{number:03}") for number in range(600)))
    assert {outcome(future) for future in futures} == {f"{number:03}" for number in range(600)}
    assert commits(store) == 1 + 3


def test_jobs_run_in_the_order_in_which_they_came(store: Store) -> None:
    ran: list[int] = []
    futures = held_up(store, *((lambda _, number=number: ran.append(number)) for number in range(50)))
    assert [outcome(future) for future in futures] == [None] * 50
    assert ran == [*range(50)]


def test_a_job_that_fails_takes_back_its_own_and_no_others_work(store: Store) -> None:
    def fail(connection: Connection) -> None:
        put("half")(connection)
        raise LookupError("on purpose")

    one, failed, twice, other = held_up(store, put("one"), fail, put("one"), put("other"))
    assert (outcome(one), outcome(other)) == ("one", "other")
    assert isinstance(outcome(failed), LookupError)
    assert isinstance(outcome(twice), StoreError)
    assert store.read(names, []) == ["one", "other"]


def test_a_job_that_loses_the_transaction_fails_them_all_and_the_next_one_works(store: Store) -> None:
    def lose(connection: Connection) -> None:
        connection.execute("ROLLBACK")

    futures = held_up(store, put("one"), lose, put("other"))
    assert all(isinstance(outcome(future), StoreError) for future in futures)
    assert store.read(names, []) == []
    assert store.submit(put("next")).result() == "next"
    assert store.read(names, []) == ["next"]


def test_a_job_that_nobody_waits_for_any_more_is_not_run(store: Store) -> None:
    is_busy, may_go_on = threading.Event(), threading.Event()
    store.submit(lambda _: (is_busy.set(), may_go_on.wait(30)))
    assert is_busy.wait(30)
    given_up, kept = store.submit(put("given up")), store.submit(put("kept"))
    assert given_up.cancel()
    may_go_on.set()
    assert kept.result(30) == "kept"
    assert store.read(names, []) == ["kept"]


def test_success_is_told_only_of_what_others_can_read(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "portbook.db"), Store(tmp_path / "portbook.db")
    found: list[list[str]] = []
    for number in range(20):
        future = store.submit(put(f"{number:02}"))
        future.add_done_callback(lambda _: found.append(other.read(names, [])))
        future.result()
    store.close()
    assert [names[-1] for names in found] == [f"{number:02}" for number in range(20)]
    other.close()


def test_a_disk_without_room_is_told_and_the_next_write_works(store: Store) -> None:
    def limit(pages: int) -> Job:
        return lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").get

    def fill(connection: Connection) -> None:
        connection.execute("INSERT INTO secret VALUES ('large', zeroblob(1000000))")

    store.submit(limit(1)).result()  # no smaller than it is
    with pytest.raises(StoreError, match="the disk is full"):
        store.submit(fill).result()
    store.submit(limit(1_000_000)).result()
    assert store.submit(put("next")).result() == "next"
    assert store.read(names, []) == ["next"]


def test_a_store_that_others_hold_is_told_and_the_next_write_works(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    store.submit(lambda connection: connection.execute("PRAGMA busy_timeout = 0").get).result()
    other = apsw.Connection(str(tmp_path / "portbook.db"))
    other.execute("BEGIN IMMEDIATE")
    future = store.submit(put("one"))
    with pytest.raises(StoreError, match="locked by a different process"):
        future.result()
    other.execute("COMMIT")
    assert store.submit(put("next")).result() == "next"
    assert store.read(names, []) == ["next"]
    other.close()
    store.close()


def test_every_waiter_gets_an_error_of_its_own(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    store.submit(put("one")).result()
    futures = held_up(store, lambda c: c.execute("ROLLBACK").get, put("other"))
    errors = [outcome(future) for future in futures]
    assert {type(error) for error in errors} == {StoreError}
    store.close()
