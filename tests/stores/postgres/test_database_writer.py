"""Writes to PostgreSQL: shared transactions, locks, and answers that were lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest
from psycopg import errors

from portbook.stores.connection_clock_and_errors import Connection, StoreError, UnknownOutcome
from portbook.stores.postgres import connection_address_and_errors
from portbook.stores.postgres import database_writer as module
from portbook.stores.postgres.connection_address_and_errors import BoundedConnection
from portbook.stores.postgres.database_writer import CommitProof
from portbook.stores.postgres.postgres_store import PostgresStore
from support.postgres_server import new_schema, own_server


@pytest.fixture
def store(postgres_schema: str) -> Iterator[PostgresStore]:
    made = PostgresStore(postgres_schema)
    yield made
    made.close()


def put(name: str) -> Any:
    def write(connection: Connection) -> str:
        connection.execute("INSERT INTO rate_bucket (caller, full_at) VALUES (?, 0)", (name,))
        return name

    return write


def names(connection: Connection) -> list[str]:
    return [str(row[0]) for row in connection.execute("SELECT caller FROM rate_bucket ORDER BY caller")]


class Losing:
    """Loses the connection at COMMIT, once: after the server did it, or before it got there."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        is_done: bool,
        error: Callable[[str], psycopg.Error] = psycopg.OperationalError,
    ) -> None:
        self.lost = 0
        commit = BoundedConnection.commit

        def lose(connection: BoundedConnection) -> None:
            if self.lost:
                commit(connection)
                return
            self.lost += 1
            if is_done:
                commit(connection)
            if error is psycopg.OperationalError:
                connection.close()
            raise error("the connection was lost")

        monkeypatch.setattr(BoundedConnection, "commit", lose)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_lost_answer_to_commit_is_asked_for_by_the_proof_of_the_transaction(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, *, is_done: bool
) -> None:
    store.submit(put("before")).result()
    losing = Losing(monkeypatch, is_done=is_done)
    assert store.submit(put("a")).result() == "a"
    assert losing.lost == 1
    assert store.read(names, []) == ["a", "before"]


def test_a_commit_that_nobody_can_tell_of_is_unknown_and_does_not_run_again(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.submit(put("before")).result()
    monkeypatch.setattr(module, "_RESOLVE_S", 0.0)
    Losing(monkeypatch, is_done=True)
    with pytest.raises(UnknownOutcome, match="may have been made or not"):
        store.submit(put("a")).result()
    assert store.read(names, []) == ["a", "before"]
    assert store.submit(put("b")).result() == "b"


@pytest.mark.parametrize("error", [errors.ProtocolViolation, errors.QueryCanceled])
def test_an_error_of_a_pooler_at_commit_does_not_make_a_job_run_twice(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, error: type[psycopg.Error]
) -> None:
    def count(connection: Connection) -> int:
        return int(connection.execute("UPDATE rate_bucket SET full_at = full_at + 1 RETURNING full_at").get)

    store.submit(put("a")).result()
    Losing(monkeypatch, is_done=True, error=error)
    assert store.submit(count).result() == 1
    assert store.submit(count).result() == 2


def test_a_transaction_that_a_crash_undid_is_not_taken_for_a_later_one_of_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = BoundedConnection.commit
    numbers: list[int] = []

    def number(connection: Connection) -> int:
        return int(connection.execute("SELECT pg_current_xact_id()::text").get)

    with own_server() as server:
        store, other = PostgresStore(server.url), PostgresStore(server.url)
        other.submit(put("other")).result()
        store.submit(put("before")).result()
        with psycopg.connect(server.url, autocommit=True) as operator:
            operator.execute("CHECKPOINT")

        def crash(connection: BoundedConnection) -> None:
            if not numbers:
                numbers.append(number(connection))
                server.kill()
                server.start()
                numbers.append(other.submit(number).result())
                # Until it has given away this one again; it takes some for its own work, perhaps this one.
                while numbers[-1] <= numbers[0]:
                    numbers.append(other.submit(number).result())
            commit(connection)

        monkeypatch.setattr(BoundedConnection, "commit", crash)
        assert store.submit(put("a")).result() == "a"
        assert numbers[1] <= numbers[0]  # the server had forgotten it, and used it again
        assert store.read(names, []) == ["a", "before", "other"]
        store.close()
        other.close()


def test_a_database_that_knows_neither_this_transaction_nor_the_one_before_cannot_tell(
    store: PostgresStore, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.submit(put("before")).result()
    Losing(monkeypatch, is_done=False)
    with psycopg.connect(postgres_schema, autocommit=True) as database:  # as in a replica that lagged
        database.execute("UPDATE commit_proof SET value = 'older'")
    with pytest.raises(UnknownOutcome):
        store.submit(put("a")).result()
    assert store.submit(put("b")).result() == "b"
    assert store.read(names, []) == ["b", "before"]


def test_jobs_that_wait_together_share_a_transaction_and_fail_alone(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = threading.Event()
    first = store.submit(lambda _: going.wait(60))

    def refuse(connection: Connection) -> None:
        put("undone")(connection)
        raise KeyError("a job's own reason")

    jobs: list[Future[Any]] = [store.submit(work) for work in (put("a"), put("a"), refuse, put("b"))]
    before = store.version()[0]
    going.set()
    assert first.result()
    assert jobs[0].result() == "a"
    assert jobs[3].result() == "b"
    with pytest.raises(StoreError, match="UniqueViolation"):
        jobs[1].result()
    with pytest.raises(KeyError):
        jobs[2].result()
    assert store.read(names, []) == ["a", "b"]
    assert store.version()[0] == before + 1


def test_work_under_one_lock_runs_one_after_the_other_in_all_processes(
    store: PostgresStore, postgres_schema: str
) -> None:
    others = [PostgresStore(postgres_schema) for _ in range(3)]

    def count(connection: Connection) -> int:
        number = len(names(connection))
        put(f"{number:03}")(connection)
        return number

    jobs = [each.submit(count, lock="counted") for _ in range(10) for each in (store, *others)]
    assert sorted(job.result() for job in jobs) == list(range(40))
    for each in others:
        each.close()


def test_a_connection_that_the_server_ended_is_made_anew(store: PostgresStore, postgres_server: str) -> None:
    pid = store.submit(lambda connection: connection.execute("SELECT pg_backend_pid()").get).result()
    reader = store.read(lambda connection: connection.execute("SELECT pg_backend_pid()").get, 0)
    with psycopg.connect(postgres_server, autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(unnest(%s::int[]), 10000)", ([pid, reader],))
    assert store.submit(put("a")).result() == "a"
    assert store.read(names, []) == ["a"]


def test_what_another_process_holds_is_not_waited_for_for_ever(
    store: PostgresStore, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.submit(put("a")).result()
    with psycopg.connect(postgres_schema) as other:
        other.execute("UPDATE rate_bucket SET full_at = 1")
        with pytest.raises(StoreError, match="locked by a different process for too long"):
            store.submit(lambda connection: connection.execute("UPDATE rate_bucket SET full_at = 2")).result()
        other.rollback()


def test_jobs_that_wait_for_one_lock_do_not_wait_one_after_the_other(
    store: PostgresStore, postgres_schema: str
) -> None:
    store.submit(put("a")).result()
    waits: list[str] = []

    def update(connection: Connection) -> None:
        waits.append(str(connection.execute("SELECT current_setting('lock_timeout')").get))
        connection.execute("UPDATE rate_bucket SET full_at = 2")

    going = threading.Event()
    store.submit(lambda _: going.wait(60))
    jobs = [store.submit(update) for _ in range(4)]
    unrelated = store.submit(put("b"))
    with psycopg.connect(postgres_schema) as other:
        other.execute("UPDATE rate_bucket SET full_at = 1")
        going.set()
        for job in jobs:
            with pytest.raises(StoreError, match="locked by a different process for too long"):
                job.result()
        assert unrelated.result() == "b"
        other.rollback()
    assert waits == ["3s", "20ms", "20ms", "20ms"]
    store.submit(update).result()
    assert waits[-1] == "3s"


def test_processes_that_wait_for_each_other_both_come_to_their_end(
    store: PostgresStore, postgres_schema: str
) -> None:
    other = PostgresStore(postgres_schema)
    store.submit(put("a")).result()
    store.submit(put("b")).result()
    meeting = threading.Barrier(2, timeout=60)
    has_met: set[str] = set()

    def both(first: str, second: str) -> Any:
        def write(connection: Connection) -> str:
            connection.execute("UPDATE rate_bucket SET full_at = full_at + 1 WHERE caller = ?", (first,))
            if first not in has_met:
                has_met.add(first)
                meeting.wait()
            connection.execute("UPDATE rate_bucket SET full_at = full_at + 1 WHERE caller = ?", (second,))
            return first

        return write

    jobs = [store.submit(both("a", "b")), other.submit(both("b", "a"))]
    assert [job.result() for job in jobs] == ["a", "b"]
    assert (
        store.read(lambda connection: connection.execute("SELECT sum(full_at) FROM rate_bucket").get, 0) == 4
    )
    other.close()


NUMBER = module.LOCK_NUMBER.format("'rate ada'")
HOLD = f"SELECT pg_advisory_xact_lock({NUMBER})".encode()


def test_a_lock_in_a_different_schema_of_the_database_keeps_nobody_waiting(
    store: PostgresStore, postgres_server: str
) -> None:
    with new_schema(postgres_server) as elsewhere:
        PostgresStore(elsewhere).close()
        with psycopg.connect(elsewhere) as other:
            other.execute(HOLD)
            assert store.submit(put("a"), lock="rate ada").result(timeout=2) == "a"


def test_a_lock_that_is_held_keeps_only_those_waiting_that_need_it_and_once(
    store: PostgresStore, postgres_schema: str
) -> None:
    store.submit(put("a")).result()
    has_begun, going = threading.Event(), threading.Event()
    with psycopg.connect(postgres_schema) as other:
        other.execute(HOLD)
        store.submit(lambda _: (has_begun.set(), going.wait(60)))
        assert has_begun.wait(60)  # what comes now waits together
        needing = [store.submit(put(f"needs {number}"), lock="rate ada") for number in range(5)]
        rest = [store.submit(put("bob"), lock="rate bob"), store.submit(put("c")), store.submit(put("d"))]
        began = time.monotonic()
        going.set()
        for job in needing:
            with pytest.raises(StoreError, match="locked by a different process for too long"):
                job.result()
        assert [job.result() for job in rest] == ["bob", "c", "d"]
        assert time.monotonic() - began < 8  # 3 s for the lock; one after the other would take 30
        began = time.monotonic()
        with pytest.raises(StoreError, match="locked by a different process for too long"):
            store.submit(put("e"), lock="rate ada").result()
        assert time.monotonic() - began < 5.5  # twice would take 6
        other.rollback()
    assert store.submit(put("e"), lock="rate ada").result() == "e"
    assert store.read(names, []) == ["a", "bob", "c", "d", "e"]


# Proofs of transactions: there once they are committed, waited for while they are in progress.


WRITE = "INSERT INTO rate_bucket (caller, full_at) VALUES (?, 0)"


@pytest.fixture
def connections(postgres_schema: str) -> Iterator[tuple[BoundedConnection, BoundedConnection]]:
    store = PostgresStore(postgres_schema)
    store.submit(lambda _: None).result()  # makes the tables
    store.close()
    both = BoundedConnection(postgres_schema), BoundedConnection(postgres_schema)
    yield both
    for each in both:
        each.close()


def committed(proof: CommitProof, connection: BoundedConnection, caller: str) -> None:
    connection.begin(is_write=True)
    connection.execute(WRITE, (caller,))
    assert proof.leave(connection)
    connection.commit()


def test_a_transaction_that_wrote_nothing_leaves_none(
    connections: tuple[BoundedConnection, BoundedConnection],
) -> None:
    writing, asking = connections
    proof = CommitProof()
    writing.begin(is_write=True)
    writing.execute("SELECT 1")
    assert not proof.leave(writing)
    writing.commit()
    assert asking.execute("SELECT count(*) FROM commit_proof").get == 0


def test_it_tells_a_transaction_that_was_committed_from_one_that_was_undone(
    connections: tuple[BoundedConnection, BoundedConnection],
) -> None:
    writing, asking = connections
    proof = CommitProof()
    committed(proof, writing, "a")
    assert proof.ask(asking) is True
    proof.confirm()
    writing.begin(is_write=True)
    writing.execute(WRITE, ("b",))
    assert proof.leave(writing)
    writing.roll_back()
    assert proof.ask(asking) is False
    proof.forget()
    assert proof.ask(asking) is None


@pytest.mark.parametrize("is_first", [True, False])
def test_a_transaction_in_progress_is_not_taken_for_undone(
    connections: tuple[BoundedConnection, BoundedConnection],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_first: bool,
) -> None:
    monkeypatch.setattr(
        connection_address_and_errors, "_WRITE", b"BEGIN READ WRITE; SET LOCAL lock_timeout = '0.1s'"
    )  # less patience
    writing, asking = connections
    proof = CommitProof()
    if not is_first:
        committed(proof, writing, "a")
        proof.confirm()
    writing.begin(is_write=True)
    writing.execute(WRITE, ("b",))
    assert proof.leave(writing)
    with pytest.raises(errors.LockNotAvailable):
        proof.ask(asking)
    writing.commit()
    assert proof.ask(asking) is True


def test_rows_of_processes_that_ended_long_ago_are_deleted(
    connections: tuple[BoundedConnection, BoundedConnection], postgres_schema: str
) -> None:
    writing, asking = connections
    committed(CommitProof(), writing, "a")
    committed(CommitProof(), writing, "b")
    with psycopg.connect(postgres_schema, autocommit=True) as database:
        database.execute("UPDATE commit_proof SET written_at = 1")
    committed(CommitProof(), writing, "c")
    assert asking.execute("SELECT count(*) FROM commit_proof").get == 1
