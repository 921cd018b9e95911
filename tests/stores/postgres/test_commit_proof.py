"""Proofs of transactions: there once they are committed, waited for while they are in progress."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from portbook.stores.postgres import bounded_connection
from portbook.stores.postgres.bounded_connection import BoundedConnection
from portbook.stores.postgres.commit_proof import CommitProof
from portbook.stores.postgres.postgres_store import PostgresStore

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
        bounded_connection, "_WRITE", b"BEGIN READ WRITE; SET LOCAL lock_timeout = '0.1s'"
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
